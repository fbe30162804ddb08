/**
 * A hostile process that may connect to a unix socket sends descriptors of sockets whose last close takes as
 * long as it chooses. This must block no event loop, neither that of a server or a worker group, nor that of
 * a client whose server is hostile. The kernel refuses descriptors if it can; otherwise native code does.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { createChannel, createClient, createServer } from 'rdma-rpc';
import { serveWorkers } from 'rdma-rpc/workers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadNative } from '../../../runtime/native/native.ts';
import { needs } from '../../needs.ts';
import { type EchoLog, echoHandlers } from '../echo-service.ts';
import { EchoDefinition } from '../gen/echo.rdma.ts';
import { compiled } from './processes.ts';

needs('strangers');

/**
 * The time that such a close takes, and the longest time that any other operation may take on a loaded
 * machine.
 */
const lingerSeconds = 60;
const atOnceMs = 25_000;

/** Connects to a path, or listens there, sends lingering sockets to its peers, and prints the results. */
const hostile = `
import array, socket, struct, sys
way, path = sys.argv[1:]
def lingering():
    door = socket.socket()
    door.bind(('127.0.0.1', 0))
    door.listen(1)
    one = socket.create_connection(door.getsockname())
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, ${lingerSeconds}))
    one.setblocking(False)
    try:
        while True: one.send(bytes(1 << 16))
    except BlockingIOError: pass
    return one, door.accept()[0]
def send(to):
    one, peer = lingering()
    kept.append(peer)
    try:
        to.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [one.fileno()]))])
        print('sent', flush=True)
    except OSError as error:
        print('refused', error.errno, flush=True)
        kept.append(one)
kept = []
here = socket.socket(socket.AF_UNIX)
if way == 'connect':
    here.connect(path)
    send(here)
else:
    here.bind(path)
    here.listen()
    print('listens', flush=True)
    there, _ = here.accept()
    kept.append(there)
    send(there)
sys.stdin.read()
`;

let folder = '';
const hostiles: ChildProcess[] = [];
const ends: (() => unknown)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-'));
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  for (const child of hostiles.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

/** Starts the hostile process and returns its output, line by line. */
function meet(way: 'connect' | 'listen', path: string): AsyncIterator<string> {
  const child = spawn('python3', ['-c', hostile, way, path], { stdio: ['pipe', 'pipe', 'inherit'] });
  hostiles.push(child);
  return createInterface(child.stdout)[Symbol.asyncIterator]();
}

const refusesHere = loadNative().refusesRights;

describe.each([
  ['the kernel refuses descriptors', true],
  ['native code refuses descriptors', false],
] as const)('where %s', (_, refuses) => {
  beforeEach(({ skip }) => {
    skip(refuses && !refusesHere, 'this kernel cannot (SO_PASSRIGHTS is of Linux 6.16)');
    const native = loadNative() as { refusesRights: boolean };
    native.refusesRights = refuses;
    ends.push(() => {
      native.refusesRights = refusesHere;
    });
  });

  /** Checks that another client's call is answered while the hostile process waits. */
  async function isServed(path: string, fabric?: 'shm' | 'shm-fd'): Promise<void> {
    const begin = performance.now();
    expect((await meet('connect', path).next()).value).toMatch(refuses ? /^refused/ : /^sent/);
    const channel = createChannel(`unix:${path}`, fabric === undefined ? {} : { fabric });
    ends.push(() => channel.close());
    const { text } = await createClient(EchoDefinition, channel).echo({ text: 'still here' });
    expect(text).toBe('still here');
    expect(performance.now() - begin).toBeLessThan(atOnceMs);
  }

  test.each(['shm', 'shm-fd'] as const)('a server continues to serve: %s', async (fabric) => {
    const path = `${folder}/server`;
    const log: EchoLog = { started: 0, aborted: [] };
    const server = createServer().add(EchoDefinition, echoHandlers(log));
    ends.push(() => server.shutdown({ graceMs: 0 }));
    await server.listen(`unix:${path}`);
    await isServed(path, fabric);
  });

  test('a group of workers continues to serve', async () => {
    const path = `${folder}/workers`;
    const file = pathToFileURL(compiled('group-worker'));
    const group = await serveWorkers(file, { address: `unix:${path}`, workers: 1 });
    ends.push(() => group.shutdown({ graceMs: 0 }));
    await isServed(path);
  });

  test('a client of a hostile server continues to run', async () => {
    const path = `${folder}/hostile`;
    const his = meet('listen', path);
    await his.next();
    const begin = performance.now();
    const channel = createChannel(`unix:${path}`);
    ends.push(() => channel.close());
    const call = createClient(EchoDefinition, channel).echo({}, { timeoutMs: 500 });
    await expect(call).rejects.toThrow();
    expect((await his.next()).value).toMatch(refuses ? /^refused/ : /^sent/);
    expect(performance.now() - begin).toBeLessThan(atOnceMs);
  });
});

test('a worker of node:cluster gets a warning, since another process owns its listening socket', async ({
  skip,
}) => {
  skip(!refusesHere, 'this kernel cannot refuse descriptors (SO_PASSRIGHTS is of Linux 6.16)');
  const script = `
    import cluster from 'node:cluster';
    import { createServer } from ${JSON.stringify(pathToFileURL(resolve('dist/runtime/index.js')).href)};
    if (cluster.isPrimary) cluster.fork().once('exit', (code) => process.exit(code));
    else {
      process.on('warning', ({ message }) => console.log(message));
      await createServer().listen(${JSON.stringify(`unix:${folder}/shared`)});
      setImmediate(() => process.exit());
    }`;
  const file = join(folder, 'cluster.mjs');
  writeFileSync(file, script);
  const { stdout } = await promisify(execFile)(process.execPath, [file]);
  expect(stdout).toMatch(/^a unix socket of this server belongs to another process: .* \(SECURITY\.md\)\n$/);
});
