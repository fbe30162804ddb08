/**
 * Tests that the commands for certificates in docs/guides/security-and-tls.md make the files that the page's
 * TLS code uses.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createChannel, createServer, tlsFiles } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { pageOf } from './document.ts';

test('a server and a client with the certificates of the page know each other', async ({ skip }) => {
  skip(spawnSync('openssl', ['version']).status !== 0, 'no openssl');
  const [, commands] =
    /<!-- certificates -->\n```sh\n([\s\S]*?)```/.exec(pageOf('guides/security-and-tls')) ?? [];
  const folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-certificates-'));
  try {
    const { status, stderr } = spawnSync('sh', ['-e', '-c', commands!], { cwd: folder, encoding: 'utf8' });
    expect(status, stderr).toBe(0);
    const files = (name: string) => {
      const [cert, key, ca] = [`${name}.pem`, `${name}.key`, 'ca.pem'].map((file) => join(folder, file));
      return { cert: cert!, key: key!, ca: ca! };
    };
    const server = createServer({
      tls: tlsFiles(files('server')),
      allow: { identity: 'spiffe://example.org/web' },
    });
    const channel = createChannel(await server.listen('127.0.0.1:0'), {
      tls: tlsFiles(files('web'), { servername: 'greeter.example.org' }),
    });
    await channel.ready({ timeoutMs: 10_000 });
    expect(channel.session?.identity).toBe('dns:greeter.example.org');
    await channel.close();
    await server.shutdown();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
