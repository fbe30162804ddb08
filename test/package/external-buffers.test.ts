/**
 * Tests the package in a JS runtime that forbids ArrayBuffers of foreign memory, as Electron and other
 * runtimes with V8's memory cage do. Here the runtime is Node, with an addon in which the name of that
 * function refers to a function that refuses.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const addon = process.env.RDMA_RPC_ADDON ?? join(root, 'build/Release/rdma_rpc.node');
const work = mkdtempSync(join(tmpdir(), 'rdma-rpc-buffers-'));
afterAll(() => rmSync(work, { recursive: true, force: true }));

const compiler = process.env.CC ?? 'cc';
const why = spawnSync(compiler, ['--version']).status === 0 ? '' : ` (not run: no ${compiler})`;

test.skipIf(why !== '')(`is refused when the addon is loaded${why}`, () => {
  const refusing = join(work, 'refusing.node');
  const bytes = readFileSync(addon, 'latin1');
  const renamed = bytes.replaceAll('napi_create_external_arraybuffer', 'napi_create_external_arraybuffeR');
  expect(renamed).not.toBe(bytes);
  writeFileSync(refusing, renamed, 'latin1');
  // 22: napi_no_external_buffers_allowed
  writeFileSync(join(work, 'refuse.c'), 'int napi_create_external_arraybuffeR(void) { return 22; }\n');
  execFileSync(compiler, ['-shared', '-fPIC', '-o', 'refuse.so', 'refuse.c'], { cwd: work });
  const { status, stderr } = spawnSync(process.execPath, ['dist/examples/hello/server.js', '127.0.0.1:0'], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, RDMA_RPC_ADDON: refusing, LD_PRELOAD: join(work, 'refuse.so') },
    timeout: 60_000,
  });
  expect(status).toBe(1);
  expect(stderr).toContain(
    'rdma-rpc: this JS runtime (such as Electron) forbids ArrayBuffers in memory that it has not allocated',
  );
  expect(stderr).toContain("as a process of Node, for example by child_process.spawn('node', ...)");
});

test('an addon of another version is named', () => {
  const old = join(work, 'old.node');
  writeFileSync(old, readFileSync(addon, 'latin1').replaceAll('whyUnusable\0', 'whyUnusablE\0'), 'latin1');
  const { status, stderr } = spawnSync(process.execPath, ['dist/examples/hello/server.js', '127.0.0.1:0'], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, RDMA_RPC_ADDON: old },
    timeout: 60_000,
  });
  expect(status).toBe(1);
  expect(stderr).toContain(`rdma-rpc: ${old} is of another version of rdma-rpc; copy or build it again`);
});
