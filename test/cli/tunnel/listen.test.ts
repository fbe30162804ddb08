/**
 * Tests where a listening end of a tunnel accepts programs, which files it replaces, and which addresses it
 * refuses with which reason.
 */
import { once } from 'node:events';
import { existsSync, linkSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { newCounts } from '../../../cli/tunnel/counts.ts';
import { serveMetrics } from '../../../cli/tunnel/metrics.ts';
import { listenOn } from '../../../cli/tunnel/program-side.ts';
import { dialTo, program, tunnelTo } from './ends.ts';

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'tunnel-listen-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

async function listening(at: string | number): Promise<Server> {
  const server = createServer().listen(at);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return server;
}

const hello = (socket: Socket): unknown => socket.resume().end('hello');

const refusal = (address: string): Promise<NodeJS.ErrnoException> =>
  listenOn(address, () => undefined).then(
    () => new Error('it listens'),
    (error: NodeJS.ErrnoException) => error,
  );

test('the socket of a dead process is replaced, and removed in the end', async () => {
  const path = join(folder(), 'stale');
  const server = await listening(`${path}.old`);
  // A closed server removes only the name to which it was bound.
  linkSync(`${path}.old`, path);
  server.close();
  await once(server, 'close');
  const hello = await program((socket) => socket.end('hello'));
  const tunnel = await tunnelTo(hello.address, `unix:${path}`);
  expect(tunnel.near.bound).toBe(`unix:${path}`);
  expect(await text(dialTo(tunnel.near.bound))).toBe('hello');
  await tunnel.close();
  await hello.close();
  expect(existsSync(path)).toBe(false);
});

test('the socket of a living process stays', async () => {
  const path = join(folder(), 'taken');
  await listening(path);
  expect(await refusal(`unix:${path}`)).toMatchObject({
    code: 'EADDRINUSE',
    message: expect.stringContaining('another process listens there') as string,
  });
  dialTo(`unix:${path}`).destroy();
});

test('another file stays', async () => {
  const path = join(folder(), 'file');
  writeFileSync(path, 'mine');
  expect(await refusal(`unix:${path}`)).toMatchObject({ code: 'EEXIST' });
  expect(readFileSync(path, 'utf8')).toBe('mine');
});

test('a file that has replaced the socket meanwhile stays, and open connections go on', async () => {
  const path = join(folder(), 'replaced');
  const echo = await program((socket) => socket.pipe(socket));
  const tunnel = await tunnelTo(echo.address, `unix:${path}`);
  const client = tunnel.dial();
  client.write('before');
  await once(client, 'data');
  rmSync(path);
  writeFileSync(path, 'mine');
  client.end('after');
  expect(await text(client)).toBe('after');
  await tunnel.close();
  await echo.close();
  expect(readFileSync(path, 'utf8')).toBe('mine');
});

test('a path that is too long, a folder that is missing, and a port that is taken are refused', async () => {
  const { port } = (await listening(0)).address() as AddressInfo;
  for (const [address, why] of [
    [`unix:/${'long'.repeat(30)}`, /bytes/],
    [`unix:${join(folder(), 'missing', 'x')}`, /ENOENT/],
    [`0.0.0.0:${port}`, /EADDRINUSE/],
  ] as const)
    expect((await refusal(address)).message).toMatch(why);
});

test.each([
  ['on TCP', () => listenOn('127.0.0.1:0', hello)],
  ['on a unix socket', () => listenOn(`unix:${join(folder(), 'x')}`, hello)],
  ['of metrics', () => serveMetrics('127.0.0.1:0', newCounts())],
])('a listener %s whose accept() fails goes on', async (_, listen) => {
  const { server, bound } = await listen();
  const warned = new Promise<void>((resolve) => {
    process.on('warning', function onWarning(warning) {
      if (!warning.message.includes('accept EMFILE')) return;
      process.off('warning', onWarning);
      resolve();
    });
  });
  server.emit('error', Object.assign(new Error('accept EMFILE'), { code: 'EMFILE' }));
  await warned;
  const client = dialTo(bound);
  client.write('GET /metrics HTTP/1.0\r\n\r\n');
  expect(await text(client)).toMatch(/hello|connections_open 0/);
  server.close();
  await once(server, 'close');
});
