/**
 * A newcomer follows docs/start/quick-start.md with the packed tarball and nothing else. The first test
 * follows the page to the letter. The others use each Node, package manager, kind of module and tool of the
 * table in docs/start/install.md. If a combination does not work, the test checks that its error says so.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  attempt,
  commands,
  commandWith,
  files,
  folder,
  inFunction,
  leave,
  portTaken,
  root,
  run,
  type Terminal,
  talk,
  tools,
  work,
} from './newcomer.ts';

const PORT = 50051;
const HELLO = 'Hello, Ada!\n';
const NODES = ['node-20', 'node-22', 'node-24', 'node-26'];
/** The versions that run TypeScript directly. The quick start says that 22.18 and later do. */
const ERASING = NODES.slice(1);
const TARBALL = 'rdma-rpc-0.1.0.tgz';

const greeter = join(work, 'greeter');
const modules = join(greeter, 'node_modules');
const server = commandWith(/^node dist\/server\.js$/);
const client = commandWith(/^node dist\/client\.js$/);
const generate = commandWith(/rdma-rpc gen/);
const compile = commandWith(/^npx tsc$/);
const tool = (path: string) => `node ${join(tools, path)}`;

/** Returns the commands with an address that is free on this machine. */
function quietly(program: string, otherProgram: string, terminal: Terminal): Promise<string> {
  const address = `unix:${join(terminal.cwd, 'socket')}`;
  return talk(`${program} ${address}`, `${otherProgram} ${address}`, terminal);
}

const compilerOptions = () =>
  (JSON.parse(files.get('tsconfig.json')!) as { compilerOptions: Record<string, unknown> }).compilerOptions;

beforeAll(async () => {
  mkdirSync(join(work, 'rdma-rpc'));
  // Other tests cover the binaries of other machines.
  const env = { RDMA_RPC_PREBUILDS: 'local' };
  await run(`npm pack --pack-destination ${join(work, 'rdma-rpc')}`, { cwd: root, env });
  expect(readdirSync(join(work, 'rdma-rpc'))).toEqual([TARBALL]);
  // Runs all commands except those at the end of the page.
  const [enter = '', ...rest] = commands.slice(0, commands.indexOf(compile));
  expect(enter).toBe('mkdir greeter && cd greeter');
  await run(enter, { cwd: work });
  for (const command of rest) {
    // The page shows the files above the command that reads them.
    if (command === generate) for (const [name, text] of files) writeFileSync(join(greeter, name), text);
    await run(command, { cwd: greeter });
  }
  await run(compile, { cwd: greeter });
});
afterAll(leave);

test('to the letter: its commands, its files, its address', async ({ skip }) => {
  skip(await portTaken(PORT), `port ${PORT} of this machine is taken`);
  expect(await talk(server, client, { cwd: greeter })).toBe(HELLO);
});

test('npm init has written commonjs, and the quick start has changed it', async () => {
  const { type } = JSON.parse(readFileSync(join(greeter, 'package.json'), 'utf8')) as { type: string };
  expect(type).toBe('module');
});

describe('Node', () => {
  test.each(NODES)('%s: the compiled service', async (node) => {
    expect(await quietly(server, client, { cwd: greeter, node })).toBe(HELLO);
  });

  test.each(ERASING)('%s: the sources as they are', async (node) => {
    expect(await quietly('node server.ts', 'node client.ts', { cwd: greeter, node })).toBe(HELLO);
  });
});

describe('package managers', () => {
  const types = 'typescript @types/node';
  test.each([
    ['pnpm', 'pnpm/bin/pnpm.mjs', 'add', 'add -D', 'exec', '--frozen-lockfile'],
    ['Yarn 1', 'yarn/bin/yarn.js', 'add', 'add -D', '-s', '--frozen-lockfile'],
    ['Yarn 4', '@yarnpkg/cli-dist/bin/yarn.js', 'add', 'add -D', 'exec', '--immutable'],
  ])('%s', async (name, path, add, addDev, exec, frozen) => {
    const cwd = join(work, name.replace(' ', '-').toLowerCase());
    mkdirSync(cwd);
    for (const [file, text] of files) writeFileSync(join(cwd, file), text);
    copyFileSync(join(work, 'rdma-rpc', TARBALL), join(work, TARBALL));
    writeFileSync(join(cwd, 'package.json'), '{ "name": "greeter", "private": true, "type": "module" }');
    if (name === 'Yarn 4') writeFileSync(join(cwd, 'yarn.lock'), '');
    const manager = tool(path);
    const env = {
      YARN_ENABLE_TELEMETRY: '0',
      YARN_ENABLE_IMMUTABLE_INSTALLS: 'false',
      CI: 'true',
      // Yarn 1 keeps a tarball by name and version, and would use the tarball of an earlier run.
      ...(name === 'Yarn 1' && { YARN_CACHE_FOLDER: join(work, 'yarn-cache') }),
    };
    const terminal = { cwd, node: 'node-24', env };
    if (name === 'Yarn 4') await run(`${manager} config set nodeLinker node-modules`, terminal);
    await run(`${manager} ${add} rdma-rpc@file:../${TARBALL}`, terminal);
    await run(`${manager} ${addDev} ${types}`, terminal);
    await run(`${manager} install ${frozen}`, terminal);
    await run(`${manager} ${exec} ${generate.replace(/^npx /, '')}`, terminal);
    await run(`${manager} ${exec} tsc`, terminal);
    expect(await quietly(server, client, terminal)).toBe(HELLO);
  });
});

describe('modules', () => {
  /**
   * Compiles the service in a folder of its own. `programs` are those of the quick start, either unchanged or
   * without await at their top level.
   */
  async function compiled(type: 'module' | 'commonjs', module: string) {
    const cwd = folder(type, modules);
    if (type === 'commonjs')
      for (const name of ['server.ts', 'client.ts'])
        writeFileSync(join(cwd, name), inFunction(files.get(name)!));
    writeFileSync(
      join(cwd, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: { ...compilerOptions(), module } }),
    );
    await run(generate, { cwd });
    return { cwd, ...(await attempt(compile, { cwd })) };
  }

  test.each([
    ['module', 'nodenext'],
    ['module', 'node20'],
    ['module', 'node16'],
    ['module', 'preserve'],
    ['commonjs', 'nodenext'],
    ['commonjs', 'node20'],
    ['commonjs', 'commonjs'],
  ] as const)('"type": "%s", TypeScript module %s', async (type, module) => {
    const { cwd, out, code } = await compiled(type, module);
    expect({ code, out }).toEqual({ code: 0, out: '' });
    expect(await quietly(server, client, { cwd, node: 'node-22' })).toBe(HELLO);
  });

  test('"type": "commonjs", TypeScript module node16: the compiler says what to do', async () => {
    const { code, out } = await compiled('commonjs', 'node16');
    expect(code).not.toBe(0);
    expect(out).toMatch(/TS1479.*CommonJS module.*\n.*"type": "module"/);
  });

  test('"type": "commonjs", TypeScript module preserve: Node says what to do', async () => {
    const { cwd } = await compiled('commonjs', 'preserve');
    const { code, errors } = await attempt(server, { cwd, node: 'node-22' });
    expect(code).not.toBe(0);
    expect(errors).toMatch(/"type": "module"/);
  });

  test.each(ERASING)(
    '"type": "commonjs", sources as they are: %s refuses, and gen has said it',
    async (node) => {
      const cwd = folder('commonjs', modules);
      const { errors: note } = await attempt(generate, { cwd });
      expect(note).toMatch(/npm pkg set type=module/);
      const { code, errors } = await attempt('node server.ts', { cwd, node });
      expect(code).not.toBe(0);
      expect(errors).toMatch(/import statement outside a module/);
    },
  );

  const required = `const { createServer, createInProcessChannel } = require('rdma-rpc');
    console.log(typeof createServer, typeof createInProcessChannel, typeof require('rdma-rpc/codec'));`;

  test.each(ERASING)("require('rdma-rpc'): %s", async (node) => {
    const cwd = folder('commonjs', modules);
    writeFileSync(join(cwd, 'main.js'), required);
    expect(await run('node main.js', { cwd, node })).toBe('function function object\n');
  });

  test("require('rdma-rpc'): Node 20.17 says what to do", async () => {
    const cwd = folder('commonjs', modules);
    writeFileSync(join(cwd, 'main.js'), required);
    const { errors } = await attempt('node main.js', { cwd, node: 'node-20' });
    expect(errors).toMatch(/require\(\) of ES Module .* not supported/);
    expect(errors).toMatch(/dynamic import\(\)/);
  });

  test('without TypeScript', async () => {
    const cwd = folder('module', modules);
    await run(`${generate} --target js`, { cwd });
    for (const name of ['server', 'client'])
      writeFileSync(join(cwd, `${name}.js`), files.get(`${name}.ts`)!.replaceAll('.rdma.ts', '.rdma.js'));
    expect(await quietly('node server.js', 'node client.js', { cwd, node: 'node-20' })).toBe(HELLO);
  });
});

describe('tools', () => {
  test.each(['module', 'commonjs'] as const)('tsx, "type": "%s"', async (type) => {
    const cwd = folder(type, modules);
    await run(generate, { cwd });
    if (type === 'commonjs')
      for (const name of ['server.ts', 'client.ts'])
        writeFileSync(join(cwd, name), inFunction(files.get(name)!));
    const tsx = tool('tsx/dist/cli.mjs');
    expect(await quietly(`${tsx} server.ts`, `${tsx} client.ts`, { cwd, node: 'node-24' })).toBe(HELLO);
  });

  test('esbuild with --packages=external', async () => {
    const cwd = folder('module', modules);
    await run(generate, { cwd });
    const esbuild = join(tools, 'esbuild/bin/esbuild');
    await run(
      `${esbuild} server.ts client.ts --bundle --packages=external --platform=node --format=esm --outdir=dist`,
      { cwd },
    );
    expect(existsSync(join(cwd, 'dist/gen'))).toBe(false);
    expect(await quietly(server, client, { cwd, node: 'node-24' })).toBe(HELLO);
  });

  test.each(['module', 'commonjs'] as const)('vitest, "type": "%s"', async (type) => {
    const cwd = folder(type, modules);
    await run(generate, { cwd });
    const program = `import { createClient, createInProcessChannel } from 'rdma-rpc';
      import { GreeterDefinition } from './gen/greeter.rdma.ts';
      test('answers', async () => {
        const channel = createInProcessChannel((server) =>
          server.add(GreeterDefinition, { sayHello: ({ name }) => ({ text: name }) }));
        expect(await createClient(GreeterDefinition, channel).sayHello({ name: 'Ada' })).toEqual({ text: 'Ada' });
        await channel.close();
      });`;
    writeFileSync(join(cwd, 'greeter.test.ts'), program);
    const out = await run(`${tool('vitest/vitest.mjs')} run --globals`, { cwd, node: 'node-24' });
    expect(out).toMatch(/1 passed/);
  });
});
