/**
 * Tests the output of package managers when the package is installed in an empty folder, with scripts
 * allowed. The package has no scripts, causes no warning, and refuses no system. MessagePack, which is inside
 * of the package, works.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { emptyApp, env, SETUP_LIMIT_MS as LIMIT_MS, pack, quiet, root } from './pack.ts';

const PNPM = 'pnpm@10.34.8';
const UNPACKED_BYTES_MAX = 7.25e6;
const work = mkdtempSync(join(tmpdir(), 'rdma-rpc-install-'));
let tarball = '';

interface Manager {
  readonly name: string;
  readonly install: readonly string[];
  /** Commands that install in another folder, from the lock file that `install` has written. */
  readonly again: readonly string[];
}
// pnpm 11 treats a forbidden script of a dependency as an error. pnpm 10, which still runs on Node 20, does
// so when an option is set.
const pnpm = ['npm', 'exec', '--yes', `--package=${PNPM}`, '--', 'pnpm', '--config.strict-dep-builds=true'];
const managers: readonly Manager[] = [
  { name: 'npm', install: ['npm', 'install', ...quiet], again: ['npm', 'ci', ...quiet] },
  { name: 'pnpm', install: [...pnpm, 'add'], again: [...pnpm, 'install', '--frozen-lockfile'] },
];

function run(cwd: string, command: readonly string[]): SpawnSyncReturns<string> {
  // pnpm asks before it removes files, unless it runs in CI.
  const how = { cwd, env: { ...env, CI: 'true' }, timeout: LIMIT_MS };
  return spawnSync(command[0]!, command.slice(1), { ...how, encoding: 'utf8' });
}

function folder(name: string): string {
  const path = join(work, name);
  emptyApp(path, name);
  return path;
}

/**
 * Returns the packages under a folder that would run a script when they are installed. `prepare` runs only
 * for the package's own developers.
 */
function withScripts(path: string): string[] {
  const found: string[] = [];
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const below = join(path, entry.name);
    if (entry.isDirectory()) found.push(...withScripts(below));
    if (entry.name === 'binding.gyp') found.push(below);
    if (entry.name !== 'package.json') continue;
    const { scripts = {} } = JSON.parse(readFileSync(below, 'utf8')) as { scripts?: Record<string, string> };
    if (['preinstall', 'install', 'postinstall'].some((name) => name in scripts)) found.push(below);
  }
  return found;
}

beforeAll(() => {
  ({ tarball } = pack(work));
}, LIMIT_MS);

afterAll(() => rmSync(work, { recursive: true, force: true }));

describe.each(managers)('$name', ({ name, install, again }) => {
  const app = join(work, name);

  test('installs it, runs no script and warns of none', { timeout: LIMIT_MS }, () => {
    folder(name);
    const done = run(app, [...install, tarball]);
    const said = `${done.stdout}${done.stderr}`;
    expect(done.status, said).toBe(0);
    expect(said).not.toMatch(/script|gyp|deprecated/i);
    expect(withScripts(join(app, 'node_modules'))).toEqual([]);
  });

  test('installs it from its lock file', { timeout: LIMIT_MS }, () => {
    rmSync(join(app, 'node_modules'), { recursive: true, force: true });
    const done = run(app, again);
    expect(done.status, `${done.stdout}${done.stderr}`).toBe(0);
  });

  test('brings nothing but itself, and little of that beside its binaries', () => {
    const modules = join(app, 'node_modules');
    const installed = readdirSync(modules).filter((entry) => !entry.startsWith('.'));
    expect(installed).toEqual(['rdma-rpc']);
    // pnpm has a link there.
    expect(bytesIn(realpathSync(join(modules, 'rdma-rpc')), ['prebuilds'])).toBeLessThan(UNPACKED_BYTES_MAX);
  });

  test('asks for the package that only scaffold needs', () => {
    writeFileSync(join(app, 'a.proto'), 'syntax = "proto3"; service S {}');
    const command = join(app, 'node_modules/rdma-rpc/dist/bundle/cli.js');
    const flags = ['scaffold', 'a.proto', '--gen', 'gen', '--into', 'a.ts'];
    const done = run(app, [process.execPath, command, ...flags]);
    expect(done.status).toBe(1);
    expect(done.stderr).toContain('scaffold needs the package ts-morph: npm install --save-dev ts-morph');
  });

  test('has a MessagePack that works, and its licence', () => {
    const script = `import { createClient, createInProcessChannel } from 'rdma-rpc';
      import { defineService, method } from 'rdma-rpc/msgpack';
      const Sum = defineService({ name: 'test.Sum', methods: { add: method() } });
      const add = ({ terms }) => ({ sum: terms.reduce((a, b) => a + b), text: 'größer' });
      const channel = createInProcessChannel((server) => server.add(Sum, { add }));
      console.log(JSON.stringify(await createClient(Sum, channel).add({ terms: [1, 2.5] })));
      await channel.close();`;
    const done = run(app, [process.execPath, '--input-type=module', '-e', script]);
    expect(done.stdout, done.stderr).toBe('{"sum":3.5,"text":"größer"}\n');
    const notices = readFileSync(join(app, 'node_modules/rdma-rpc/dist/vendor/NOTICES'), 'utf8');
    for (const name of [
      'msgpackr',
      'commander',
      'chokidar',
      'tinyglobby',
      'base64-js',
      'uplot',
      'node-addon-api',
    ])
      expect(notices).toContain(`${name} ${versionOf(name)} (MIT)`);
    expect(notices).toContain(`@bufbuild/protobuf ${versionOf('@bufbuild/protobuf')} (`);
    for (const section of notices.split(/^----$/m)) expect(section).toMatch(/Copyright (\(c\) |20)/i);
  });
});

/** Returns the size of all files below `path`, without the files in folders called `without`. */
function bytesIn(path: string, without: readonly string[]): number {
  return readdirSync(path, { withFileTypes: true }).reduce((sum, entry) => {
    const below = join(path, entry.name);
    if (!entry.isDirectory()) return sum + statSync(below).size;
    return without.includes(entry.name) ? sum : sum + bytesIn(below, without);
  }, 0);
}

function versionOf(name: string): string {
  const text = readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

test.each([
  { system: 'musl', flags: ['--os=linux', '--cpu=x64', '--libc=musl'] },
  { system: 'another processor', flags: ['--os=linux', '--cpu=ia32', '--libc=glibc'] },
  { system: 'another system', flags: ['--os=darwin', '--cpu=arm64'] },
])('npm installs it on $system', { timeout: LIMIT_MS }, ({ system, flags }) => {
  const app = folder(`on-${system.replaceAll(' ', '-')}`);
  const done = run(app, ['npm', 'install', ...quiet, ...flags, tarball]);
  expect(done.status, done.stderr).toBe(0);
  // npm silently leaves out an optional package that it cannot install, so the test requests the package as a
  // required one.
  expect(existsSync(join(app, 'node_modules/rdma-rpc'))).toBe(true);
});

test('package.json refuses no system', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as object;
  for (const name of ['os', 'cpu', 'libc']) expect(manifest).not.toHaveProperty(name);
});
