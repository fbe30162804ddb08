/**
 * Tests the package as a user gets it. The package is packed and installed without scripts in an empty
 * folder. The quick start is carried out there, on the binary that the package contains.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { whyNot } from '../needs.ts';
import { emptyApp, env, pack, quiet, root, SETUP_LIMIT_MS } from './pack.ts';
import { filesOf } from './quick-start.ts';

/** The addon is built if the headers of libibverbs are installed. */
const PLUGIN = 'build/Release/rdma_rpc_verbs.so';
const STEP_LIMIT_MS = 120_000;

const work = mkdtempSync(join(tmpdir(), 'rdma-rpc-packed-'));
const app = join(work, 'app');
const children: ChildProcess[] = [];
let packed: readonly string[] = [];

function run(cwd: string, command: string, ...args: string[]): string {
  return execFileSync(command, args, {
    cwd,
    encoding: 'utf8',
    timeout: STEP_LIMIT_MS,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

beforeAll(() => {
  const { tarball, files } = pack(work);
  packed = files;
  emptyApp(app, 'app');
  run(app, 'npm', 'install', '--ignore-scripts', ...quiet, tarball);
  for (const [name, content] of filesOf(readFileSync(join(root, 'docs/start/quick-start.md'), 'utf8'))) {
    writeFileSync(join(app, name), content);
  }
}, SETUP_LIMIT_MS);

afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(work, { recursive: true, force: true });
});

test('has the addon, and neither tests nor an install script', () => {
  expect(packed).toContain(`prebuilds/${process.platform}-${process.arch}/rdma_rpc.node`);
  expect(packed).toEqual(
    expect.arrayContaining([
      'dist/bundle/cli.js',
      'dist/bundle/index.js',
      'README.md',
      'LICENSE',
      'CHANGELOG.md',
      'SECURITY.md',
    ]),
  );
  // Matches files that must not be in the package. Operators use some files of examples, and the pages link
  // to them.
  const own = /^(dist\/)?(test|bench|examples(?!\/(bpftrace|dashboard|kubernetes)\/))\/|^native\/test\//;
  expect(packed.filter((path) => own.test(path))).toEqual([]);
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  expect(Object.keys(scripts).filter((name) => /install$/.test(name))).toEqual([]);
});

test('contains all files that its documents link to', () => {
  const documents = packed.filter((path) => /\.md$/.test(path) && path !== 'README.md');
  expect(documents).toContain('docs/README.md');
  const missing = documents.flatMap((path) =>
    [...readFileSync(join(root, path), 'utf8').matchAll(/\]\((?!https?:)([^)#\s]+)/g)]
      .map(([, link]) => join(path, '..', link!))
      .filter((to) => !packed.some((each) => each === to || each.startsWith(`${to}/`)))
      .map((to) => `${path}: ${to}`),
  );
  expect(missing).toEqual([]);
});

test('has the program that perf measures with, which may be executed once it is installed', () => {
  const shipped = `prebuilds/${process.platform}-${process.arch}/rdma_rpc_perf`;
  expect(packed).toContain(shipped);
  // The program ends with its stdin.
  expect(run(app, join(app, 'node_modules/rdma-rpc', shipped))).toBe('');
});

test('has the plug-in for RDMA devices, which may lack its libraries', ({ skip }) => {
  skip(!existsSync(join(root, PLUGIN)), `the plug-in was not built: ${whyNot('verbs')}`);
  const shipped = `prebuilds/${process.platform}-${process.arch}/rdma_rpc_verbs.so`;
  expect(packed).toContain(shipped);
  const path = join(app, 'node_modules/rdma-rpc', shipped);
  const plugin = readFileSync(path, 'latin1');
  expect(plugin).toContain('libibverbs.so.1');
  // The following checks run as on a machine without libibverbs.
  writeFileSync(path, plugin.replaceAll('libibverbs.so.1', 'libibverbs.so.0'), 'latin1');
});

test('can be imported by each of its names, those of neighbours only beside their packages', () => {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: object };
  const names = Object.keys(exports)
    // `gen*` only prints advice (see generated.test.ts).
    .filter((entry) => entry !== './package.json' && !entry.endsWith('*'))
    .map((entry) => entry.replace('.', 'rdma-rpc').replace('*1', 'v1'));
  const script = `for (const name of ${JSON.stringify(names)}) {
      const found = await import(name).then((all) => Object.keys(all).length > 0, ({ code }) => code);
      console.log(name, found);
    }`;
  const neighbours = ['otel', 'prometheus', 'connect', 'grpc/client', 'validate', 'spiffe', 'etcd'].map(
    (name) => `rdma-rpc/${name}`,
  );
  expect(run(app, process.execPath, '--input-type=module', '-e', script).trim().split('\n').sort()).toEqual(
    names.map((name) => `${name} ${neighbours.includes(name) ? 'ERR_MODULE_NOT_FOUND' : 'true'}`).sort(),
  );
});

test(
  "the quick start's service answers",
  async () => {
    run(app, 'npx', '--no-install', 'rdma-rpc', 'gen', 'greeter.proto', '-o', 'gen');
    expect(readdirSync(join(app, 'gen'))).toEqual(['greeter.rdma.ts']);

    // Uses the tsconfig.json of the quick start, with this project's compiler and types.
    const typeRoots = join(root, 'node_modules', '@types');
    run(app, process.execPath, join(root, 'node_modules/typescript/bin/tsc'), '--typeRoots', typeRoots);

    const address = `unix:${join(work, 'greeter.sock')}`;
    const server = spawn(process.execPath, ['dist/server.js', address], {
      cwd: app,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(server);
    for await (const line of createInterface(server.stdout)) {
      expect(line).toBe(`listening on ${address}`);
      break;
    }
    expect(run(app, process.execPath, 'dist/client.js', address)).toBe('Hello, Ada!\n');
  },
  STEP_LIMIT_MS,
);
