/**
 * Tests functions that work on a machine where the addon cannot be loaded, and the errors of all other
 * functions. Each case runs a process that seems to be on another system, with the compiled modules in a
 * folder without binaries.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'rdma-rpc-no-addon-'));

beforeAll(() => {
  // The package without its binaries consists of dist and the entries of package.json that dist uses.
  for (const name of ['dist', 'package.json', 'node_modules', 'proto'])
    symlinkSync(join(root, name), join(work, name));
});
afterAll(() => rmSync(work, { recursive: true, force: true }));

interface Desk {
  readonly platform: NodeJS.Platform;
  readonly arch: string;
  /** The part of process.report that names the C library. */
  readonly glibc: boolean;
}

const desks: readonly Desk[] = [
  { platform: 'darwin', arch: 'arm64', glibc: false },
  { platform: 'win32', arch: 'x64', glibc: false },
  { platform: 'linux', arch: 'riscv64', glibc: true },
  { platform: 'linux', arch: 'x64', glibc: false },
];

/** Makes the process seem to run on the given system. */
function disguise({ platform, arch, glibc }: Desk): string {
  return `
    Object.defineProperty(process, 'platform', { value: '${platform}' });
    Object.defineProperty(process, 'arch', { value: '${arch}' });
    if (${!glibc}) process.report.getReport = () => ({ header: {} });
    if ('${platform}' === 'win32') process.geteuid = process.getegid = undefined;
  `;
}

/** Runs a module on a simulated machine. Returns its output as JSON. */
function on(desk: Desk, program: string): unknown {
  writeFileSync(join(work, 'desk.mjs'), disguise(desk));
  writeFileSync(join(work, 'program.mjs'), program);
  const flags = ['--preserve-symlinks', '--preserve-symlinks-main', '--conditions=rdma-rpc-modules'];
  const script = ['--import', './desk.mjs', 'program.mjs'];
  const done = spawnSync(process.execPath, [...flags, ...script], { cwd: work, encoding: 'utf8' });
  expect(done.stderr).toBe('');
  return JSON.parse(done.stdout);
}

const connection =
  'connections between processes need it, and it is made for Linux with glibc on x64 and arm64';
const works = 'messages, JSON, the generator and createInProcessChannel() work without it';

describe.each(desks)('$platform-$arch, glibc $glibc', (desk) => {
  test('all four kinds of calls, deadlines, metadata and errors work in process', () => {
    const seen = on(
      desk,
      `import { createClient, createInProcessChannel, Metadata, RpcError } from 'rdma-rpc';
      import { StreamsDefinition } from './dist/test/stream/gen/stream.rdma.js';
      import { EchoDefinition } from './dist/test/runtime/gen/echo.rdma.js';
      const interceptor = (next) => async (request) => {
        request.metadata.set('asked', 'yes');
        return next(request);
      };
      const channel = createInProcessChannel(
        (server) => server
          .add(EchoDefinition, {
            echo: (request, { metadata, trailer }) => {
              trailer.set('told', metadata.get('asked') ?? 'no');
              return request;
            },
            behave: ({ text }, { signal }) => {
              if (text === 'throw') throw new RpcError(5, 'nothing there');
              return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
            },
          })
          .add(StreamsDefinition, {
            count: async function* ({ count }) { for (let number = 0; number < count; ++number) yield { number }; },
            sum: async (items) => { let number = 0; for await (const item of items) number += item.number; return { number }; },
            echo: async function* (items) { yield* items; },
          }),
        { interceptors: [interceptor] },
      );
      const echo = createClient(EchoDefinition, channel);
      const streams = createClient(StreamsDefinition, channel);
      const codeOf = (call) => call.then(() => 'OK', (error) => error.codeName);
      const numbers = async (messages) => { const all = []; for await (const { number } of messages) all.push(number); return all; };
      async function* three() { for (const number of [1, 2, 3]) yield { number }; }
      let told;
      const large = await echo.echo({ payload: new Uint8Array(300_000).fill(7) }, { onTrailer: (trailer) => { told = trailer.get('told'); } });
      const controller = new AbortController();
      const cancelled = codeOf(echo.behave({ text: 'hang' }, { signal: controller.signal }));
      controller.abort();
      const result = {
        fabric: channel.fabric,
        large: large.payload.length,
        told,
        count: await numbers(streams.count({ count: 3 })),
        sum: (await streams.sum(three())).number,
        echo: await numbers(streams.echo(three())),
        thrown: await codeOf(echo.behave({ text: 'throw' })),
        late: await codeOf(echo.behave({ text: 'hang' }, { timeoutMs: 20 })),
        cancelled: await cancelled,
      };
      await channel.close();
      console.log(JSON.stringify(result));`,
    );
    expect(seen).toEqual({
      fabric: 'loopback',
      large: 300_000,
      told: 'yes',
      count: [0, 1, 2],
      sum: 6,
      echo: [1, 2, 3],
      thrown: 'NOT_FOUND',
      late: 'DEADLINE_EXCEEDED',
      cancelled: 'CANCELLED',
    });
  });

  test('messages, JSON and the generator work', () => {
    const seen = on(
      desk,
      `import { EchoMessage } from './dist/test/runtime/gen/echo.rdma.js';
      import { toJson, fromJson } from 'rdma-rpc/json';
      import { generate } from 'rdma-rpc/codegen';
      const bytes = EchoMessage.encode({ text: 'a', number: 1 });
      const { outputs } = await generate({ files: ['${root}examples/hello/greeter.proto'], include: ['${root}examples/hello'] });
      console.log(JSON.stringify([toJson(EchoMessage, EchoMessage.decode(bytes)), fromJson(EchoMessage, { text: 'b' }).text, outputs.length]));`,
    );
    expect(seen).toEqual([{ text: 'a', number: 1 }, 'b', 1]);
  });

  test('functions that need the addon say so in one sentence when they are called', () => {
    const { platform, arch } = desk;
    const said = on(
      desk,
      `import { allocBuffer, createChannel, createServer, registerBuffer } from 'rdma-rpc';
      import { createClient } from 'rdma-rpc';
      import { EchoDefinition } from './dist/test/runtime/gen/echo.rdma.js';
      const said = async (use) => { try { await use(); return 'nothing'; } catch (error) { return error.message; } };
      const channels = ['auto', 'shm', 'tcp', 'verbs'].map((fabric) => createChannel('127.0.0.1:1', { fabric }));
      const result = {
        listen: await said(() => createServer().listen('127.0.0.1:0')),
        tcp: await said(() => createServer({ fabric: 'tcp' }).listen('127.0.0.1:0')),
        alloc: await said(() => allocBuffer(100)),
        register: await said(() => registerBuffer(new ArrayBuffer(100))),
      };
      for (const channel of channels) {
        result['call ' + Object.keys(result).length] = await said(() => createClient(EchoDefinition, channel).echo({}));
        await channel.close();
      }
      console.log(JSON.stringify(result));`,
    ) as Record<string, string>;
    for (const text of Object.values(said)) {
      expect(text).toContain(`no native addon for ${platform}-${arch}`);
      expect(text).toContain(
        desk.platform === 'linux' && desk.arch === 'x64' ? 'this Node runs on musl' : connection,
      );
      expect(text).toContain(works);
    }
  });
});

test('RDMA_RPC_ADDON=none turns the addon off where there is one', () => {
  const script = `import { createInProcessChannel, createServer } from 'rdma-rpc';
    const channel = createInProcessChannel(() => undefined);
    await channel.ready();
    console.log(channel.fabric);
    await channel.close();
    await createServer().listen('127.0.0.1:0').catch((error) => console.log(error.message));`;
  const done = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: root,
    env: { ...process.env, RDMA_RPC_ADDON: 'none' },
    encoding: 'utf8',
  });
  expect(done.stderr).toBe('');
  expect(done.stdout).toBe(`loopback\nrdma-rpc: there is no addon, as RDMA_RPC_ADDON is none; ${works}\n`);
});
