/**
 * Tests the recipes of the guide (Bundlers) with esbuild: an application in one file and its worker in
 * another, as ESM and as CommonJS.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const addon = process.env.RDMA_RPC_ADDON ?? join(root, 'build/Release/rdma_rpc.node');
const work = mkdtempSync(join(tmpdir(), 'rdma-rpc-bundle-'));
afterAll(() => rmSync(work, { recursive: true, force: true }));

/** Makes this checkout a package that is installed in `folder`. */
function install(folder: string): void {
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(root, join(folder, 'node_modules/rdma-rpc'));
}

const source = join(work, 'app');
const app = ['main.mjs', 'worker.mjs'].map((name) => join(source, name));
beforeAll(() => {
  install(source);
  copyFileSync(join(root, 'dist/examples/hello/gen/greeter.rdma.js'), join(source, 'greeter.rdma.js'));
  for (const name of ['main.mjs', 'worker.mjs']) {
    copyFileSync(join(root, 'test/runtimes/app', name), join(source, name));
  }
});

const { RDMA_RPC_ADDON: _, ...env } = process.env;
const answers = 'Hello, Ada!\nHello from a worker, Grace!\n';

describe.each(['esm', 'cjs'] as const)('%s', (format) => {
  const extension = format === 'esm' ? '.mjs' : '.cjs';

  async function bundled(name: string, external: string[] = []): Promise<string> {
    const folder = join(work, format, name);
    mkdirSync(folder, { recursive: true });
    await build({
      entryPoints: app,
      outdir: folder,
      outExtension: { '.js': extension },
      bundle: true,
      platform: 'node',
      format,
      external,
      logOverride: { 'empty-import-meta': 'silent' },
    });
    return folder;
  }

  const start = (folder: string, more: NodeJS.ProcessEnv = {}) =>
    spawnSync(process.execPath, [join(folder, `main${extension}`), join(folder, `worker${extension}`)], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...env, ...more },
    });

  let inOne: string;
  beforeAll(async () => {
    inOne = await bundled('in-one');
  });

  test('without the addon the error tells where it was looked for, and the recipe', () => {
    const { status, stderr } = start(inOne);
    expect(status).toBe(1);
    expect(stderr).toContain(`looked at ${join(inOne, 'rdma_rpc.node')}`);
    expect(stderr).toContain('this code is in a bundle: leave rdma-rpc out of it ("external"), or copy');
    expect(stderr).toContain('(docs/guides/bundlers-and-runtimes.md)');
  });

  test('with an addon that RDMA_RPC_ADDON names', () => {
    expect(start(inOne, { RDMA_RPC_ADDON: addon })).toMatchObject({ stderr: '', stdout: answers, status: 0 });
  });

  test('with one that is not there', () => {
    const { status, stderr } = start(inOne, { RDMA_RPC_ADDON: '/none.node' });
    expect([status, stderr]).toEqual([
      1,
      'rdma-rpc: there is no file /none.node, which RDMA_RPC_ADDON names as the addon\n',
    ]);
  });

  test('with a copy of the addon beside it', async () => {
    const folder = await bundled('copy');
    copyFileSync(addon, join(folder, 'rdma_rpc.node'));
    expect(start(folder)).toMatchObject({ stderr: '', stdout: answers, status: 0 });
  });

  test('in a folder where the package is installed', async () => {
    const folder = await bundled('installed');
    install(folder);
    expect(start(folder, { RDMA_RPC_ADDON: '' })).toMatchObject({ stderr: '', stdout: answers, status: 0 });
  });

  test('which leaves the package out', async () => {
    const folder = await bundled('external', ['rdma-rpc', 'rdma-rpc/*']);
    install(folder);
    expect(start(folder)).toMatchObject({ stderr: '', stdout: answers, status: 0 });
  });
});
