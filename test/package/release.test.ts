/**
 * Tests a release as it would be published. `scripts/release.mjs` creates its folders, a registry on this
 * machine serves it, and npm installs it in an empty folder for several systems. The quick start is carried
 * out there.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { emptyApp, root, SETUP_LIMIT_MS } from './pack.ts';
import { filesOf } from './quick-start.ts';
import { type Registry, serveRegistry } from './registry.ts';

const work = mkdtempSync(join(tmpdir(), 'rdma-rpc-release-'));
const out = join(work, 'release');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
let registry: Registry;
let said = '';

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

// `spawnSync` cannot be used, because the registry is in this process.
function run(cwd: string, command: string, ...args: string[]): Promise<Ended> {
  const env = { ...process.env, npm_config_registry: registry?.url, npm_config_cache: join(work, 'cache') };
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => (stdout += chunk));
  child.stderr.on('data', (chunk) => (stderr += chunk));
  return new Promise((resolve) => child.on('close', (status) => resolve({ status, stdout, stderr })));
}

async function install(app: string, flags: readonly string[], ...packages: string[]): Promise<void> {
  const done = await run(app, 'npm', 'install', '--no-audit', '--no-fund', ...flags, ...packages);
  expect(done.status, `${done.stdout}${done.stderr}`).toBe(0);
}

function newApp(name: string): string {
  const app = join(work, name);
  emptyApp(app, name);
  return app;
}

/** Returns the packages of an application. */
function installed(app: string): string[] {
  const modules = join(app, 'node_modules');
  return readdirSync(modules)
    .filter((entry) => !entry.startsWith('.'))
    .flatMap((entry) =>
      entry.startsWith('@') ? readdirSync(join(modules, entry)).map((each) => `${entry}/${each}`) : [entry],
    )
    .sort();
}

/** Makes an empty package for a platform that is not built here. */
function otherPlatform(name: string, manifest: object): string {
  const folder = join(work, `other-${name}`);
  mkdirSync(folder);
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: `@rdma-rpc/${name}`, version, ...manifest }),
  );
  return folder;
}

beforeAll(async () => {
  const made = spawnSync(process.execPath, ['scripts/release.mjs', '--local', '--out', out], {
    cwd: root,
    encoding: 'utf8',
  });
  said = `${made.stdout}${made.stderr}`;
  expect(made.status, said).toBe(0);
  const other = process.arch === 'x64' ? 'arm64' : 'x64';
  const stub = { os: ['linux'], cpu: [other], libc: ['glibc'] };
  const packages = ['rdma-rpc', 'rdma-rpc-cli', `linux-${process.arch}`].map((name) => join(out, name));
  registry = await serveRegistry([...packages, otherPlatform(`linux-${other}`, stub)], work);
}, SETUP_LIMIT_MS);
afterAll(() => {
  registry?.close();
  rmSync(work, { recursive: true, force: true });
});

test('lists the packed files, missing steps before publication, and the components', () => {
  for (const name of ['rdma-rpc', 'rdma-rpc-cli', `rdma-rpc-linux-${process.arch}`])
    expect(said).toContain(`${name}-${version}.tgz`);
  for (const name of ['rdma-rpc', 'rdma-rpc-cli', `@rdma-rpc/linux-${process.arch}`])
    expect(said).toContain(`  ${name}: could be published`);
  expect(said).toMatch(/^! before it is published: the commit has the tag/m);
  const sbom = JSON.parse(readFileSync(join(out, `rdma-rpc-${version}.cdx.json`), 'utf8')) as {
    bomFormat: string;
    components: { name: string; licenses?: unknown }[];
  };
  expect(sbom.bomFormat).toBe('CycloneDX');
  expect(sbom.components.map(({ name }) => name)).toEqual(expect.arrayContaining(['msgpackr', 'commander']));
  expect(sbom.components.map(({ name }) => name)).not.toContain('vitest');
});

test('no package has conditions, tests or scripts of this repository', () => {
  for (const name of ['rdma-rpc', 'rdma-rpc-cli', `linux-${process.arch}`]) {
    const text = readFileSync(join(out, name, 'package.json'), 'utf8');
    expect(text).not.toMatch(/rdma-rpc-source|rdma-rpc-modules|"scripts"|devDependencies/);
    const files = readdirSync(join(out, name), { recursive: true }) as string[];
    expect(files.filter((path) => /(^|\/)test\/|\.map$|\.test\./.test(path))).toEqual([]);
  }
});

test('a later build for all platforms replaces the binaries of this machine', () => {
  expect(existsSync(join(root, 'build', '.stamps', `portable-${process.arch}`))).toBe(false);
});

describe.each([
  { system: 'this machine', flags: [], platform: [`@rdma-rpc/linux-${process.arch}`] },
  { system: 'macOS', flags: ['--os=darwin', '--cpu=arm64'], platform: [] },
  { system: 'Windows', flags: ['--os=win32', '--cpu=x64'], platform: [] },
  { system: 'Alpine', flags: ['--os=linux', '--cpu=x64', '--libc=musl'], platform: [] },
  { system: 'another processor', flags: ['--os=linux', '--cpu=riscv64', '--libc=glibc'], platform: [] },
])('on $system', ({ system, flags, platform }) => {
  const app = join(work, system.replaceAll(' ', '-'));

  test('installs with the one binary that fits, or none', { timeout: SETUP_LIMIT_MS }, async () => {
    newApp(system.replaceAll(' ', '-'));
    await install(app, flags, 'rdma-rpc');
    expect(installed(app)).toEqual([...platform, 'rdma-rpc']);
  });

  test('channels within one process work', async () => {
    const script = `import { createClient, createInProcessChannel } from 'rdma-rpc';
      import { defineService, method } from 'rdma-rpc/msgpack';
      const Sum = defineService({ name: 'test.Sum', methods: { add: method() } });
      const channel = createInProcessChannel((server) => server.add(Sum, { add: ({ terms }) => terms[0] + terms[1] }));
      console.log(await createClient(Sum, channel).add({ terms: [1, 2] }), channel.fabric);
      await channel.close();`;
    const done = await run(app, process.execPath, '--input-type=module', '-e', script);
    expect(done.stdout, done.stderr).toBe(`3 ${platform.length === 0 ? 'loopback' : 'sim'}\n`);
  });
});

test('the command of rdma-rpc fetches the commands where they are not installed', {
  timeout: SETUP_LIMIT_MS,
}, async () => {
  const app = newApp('fetched');
  await install(app, [], 'rdma-rpc');
  const done = await run(app, 'npx', '--no-install', 'rdma-rpc', '--version');
  expect(done.stdout).toBe(`${version}\n`);
  expect(done.stderr).toContain(`To keep it: npm install --save-dev rdma-rpc-cli@${version}`);
  expect(installed(app)).not.toContain('rdma-rpc-cli');
});

test("the quick start's service answers", { timeout: SETUP_LIMIT_MS }, async () => {
  const app = newApp('quick-start');
  await install(app, [], 'rdma-rpc');
  await install(app, ['--save-dev'], 'rdma-rpc-cli');
  expect(installed(app)).toEqual([`@rdma-rpc/linux-${process.arch}`, 'rdma-rpc', 'rdma-rpc-cli']);
  for (const [name, content] of filesOf(readFileSync(join(root, 'docs/start/quick-start.md'), 'utf8')))
    writeFileSync(join(app, name), content);
  const generated = await run(app, 'npx', '--no-install', 'rdma-rpc', 'gen', 'greeter.proto', '-o', 'gen');
  expect(generated.status, generated.stderr).toBe(0);
  const typeRoots = join(root, 'node_modules', '@types');
  const compiled = await run(
    app,
    process.execPath,
    join(root, 'node_modules/typescript/bin/tsc'),
    '--typeRoots',
    typeRoots,
  );
  expect(compiled.status, compiled.stdout).toBe(0);
  const address = `unix:${join(work, 'greeter.sock')}`;
  const server = spawn(process.execPath, ['dist/server.js', address], {
    cwd: app,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    for await (const line of createInterface(server.stdout)) {
      expect(line).toBe(`listening on ${address}`);
      break;
    }
    expect((await run(app, process.execPath, 'dist/client.js', address)).stdout).toBe('Hello, Ada!\n');
  } finally {
    server.kill('SIGKILL');
  }
});

test('each entry point can be imported and has types', { timeout: SETUP_LIMIT_MS }, async () => {
  const app = join(work, 'quick-start');
  const { exports } = JSON.parse(readFileSync(join(out, 'rdma-rpc/package.json'), 'utf8')) as {
    exports: object;
  };
  // These entry points are for other libraries, and need the packages of those libraries.
  const neighbours = /otel|prometheus|connect|grpc\/client|validate|spiffe|kubernetes|etcd/;
  const names = Object.keys(exports)
    .filter((entry) => entry !== './package.json' && !entry.endsWith('*') && !neighbours.test(entry))
    .map((entry) => entry.replace('.', 'rdma-rpc').replace('*1', 'v1'));
  const text = names
    .map(
      (name, index) =>
        `import * as m${index} from '${name}'; console.log(Object.keys(m${index}).length > 0);`,
    )
    .join('\n');
  writeFileSync(join(app, 'all.ts'), text);
  const options = [
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--strict',
    '--types',
    'node',
    '--outDir',
    'all',
  ];
  const typeRoots = ['--typeRoots', join(root, 'node_modules', '@types'), '--ignoreConfig'];
  const compiled = await run(
    app,
    process.execPath,
    join(root, 'node_modules/typescript/bin/tsc'),
    ...options,
    ...typeRoots,
    'all.ts',
  );
  expect(compiled.stdout).toBe('');
  const imported = await run(app, process.execPath, 'all/all.js');
  expect(imported.stdout, imported.stderr).toBe(names.map(() => 'true\n').join(''));
});

test('perf starts its program out of rdma-rpc-cli, with the plug-in of the platform', {
  timeout: SETUP_LIMIT_MS,
}, async () => {
  const app = join(work, 'quick-start');
  const program = `prebuilds/linux-${process.arch}/rdma_rpc_perf`;
  expect(existsSync(join(app, 'node_modules/rdma-rpc-cli', program))).toBe(true);
  expect(existsSync(join(app, `node_modules/@rdma-rpc/linux-${process.arch}/rdma_rpc_perf`))).toBe(false);
});
