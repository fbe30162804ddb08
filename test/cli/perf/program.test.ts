/**
 * Tests the errors of `rdma-rpc perf` when its measuring program is missing or ends too early, and that the
 * program ends when its command ends.
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Program } from '../../../cli/perf/program.ts';
import type { PerfOptions, PerfOutcome, PerfStep } from '../../../cli/perf/step.ts';
import { addonPath } from '../../../runtime/native/addon-path.ts';
import { until } from '../../outcomes.ts';
import { run } from '../command.ts';
import { listener } from './listener.ts';

const options: PerfOptions = {
  fabric: 'shm',
  connection: 'RC',
  sharedReceives: false,
  manager: false,
  multicast: false,
  host: '127.0.0.1',
  active: true,
  queuePairs: 1,
  depth: 1,
  receiveDepth: 16,
  bytesMax: 64,
  inlineMax: 0,
  validate: false,
  events: false,
  seed: 1,
};
const step: PerfStep = {
  verb: 'send',
  latency: true,
  measures: true,
  receives: false,
  bytes: 64,
  messages: 300,
  durationNs: 0,
  signalEvery: 1,
  postList: 1,
};

/** Returns the pid of the program that a process has started. */
function programOf(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? [];
  const found = children.find(
    (child) => readFileSync(`/proc/${child}/comm`, 'utf8').trim() === 'rdma_rpc_perf',
  );
  return Number(found ?? 0);
}

const lives = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

/**
 * Returns whether the program is measuring. One thread of the program sleeps for each message. The number of
 * its voluntary context switches shows that the thread sleeps.
 */
const measures = (pid: number): boolean =>
  readdirSync(`/proc/${pid}/task`).some((thread) => {
    try {
      const status = readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8');
      return Number(/^voluntary_ctxt_switches:\t(\d+)/m.exec(status)?.[1]) > 2000;
    } catch {
      return false; // The thread that made the connection has ended during this check.
    }
  });

describe('the measuring program, driven by hand', () => {
  const open: Program[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((each) => each.close()));
  });
  const opened = async (more: Partial<PerfOptions> = {}): Promise<Program> => {
    const program = await Program.open({ ...options, ...more });
    open.push(program);
    return program;
  };

  test('returns each latency, and the answering side has received all messages', async () => {
    const [client, server] = [await opened(), await opened({ active: false })];
    const reached = server.connect(client.address);
    expect(await client.connect(server.address)).toBe('');
    expect(await reached).toBe('');
    const serving = { ...step, measures: false, receives: true };
    await Promise.all([client.prepare(step), server.prepare(serving)]);
    let told = 0;
    const served = server.run(serving, () => undefined);
    const measured = await new Promise<PerfOutcome>((resolve) => {
      const ended = client.run(step, (messages) => {
        told = messages;
        server.stop(messages);
        client.stop(0);
      });
      resolve(ended);
    });
    expect(told).toBe(300);
    expect(measured).toMatchObject({ error: '', messages: 300 });
    expect(measured.latencyNs).toHaveLength(300);
    expect(Math.min(...measured.latencyNs)).toBeGreaterThan(0);
    expect(await served).toMatchObject({ error: '', received: 300 });
  });

  test.each([
    ['a program of another version', { lines: 99 } as object, /of another version of rdma-rpc/],
    ['an unknown fabric', { fabric: 'sim' as 'shm' }, /unknown fabric 'sim'/],
    [
      'a name with characters that a line treats specially',
      { fabric: 'a b&c=d%41\n+"é' as 'shm' },
      /unknown fabric 'a b&c=d%41\n\+"é'/,
    ],
  ])('reports %s', async (_, more, why) => {
    await expect(opened(more)).rejects.toThrow(why);
  });

  test('refuses requests after it has ended, and stop() has no effect then', async () => {
    const program = await opened();
    await program.close();
    program.stop(0);
    await expect(program.prepare(step)).rejects.toThrow(/has ended \(exit code 0\)/);
  });
});

describe('the measuring program beside an addon at another path', () => {
  let folder = '';
  const before = process.env.RDMA_RPC_ADDON;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'perf-'));
    process.env.RDMA_RPC_ADDON = join(folder, 'rdma_rpc.node');
    writeFileSync(join(folder, 'rdma_rpc.node'), '');
  });
  afterEach(() => {
    if (before === undefined) delete process.env.RDMA_RPC_ADDON;
    else process.env.RDMA_RPC_ADDON = before;
    rmSync(folder, { recursive: true, force: true });
  });

  test('is reported when it is missing', async () => {
    await expect(Program.open(options)).rejects.toThrow(
      `cannot start ${join(folder, 'rdma_rpc_perf')}: it belongs beside the addon`,
    );
  });

  test('is reported when it may not be executed', async () => {
    const copy = join(folder, 'rdma_rpc_perf');
    if (before === undefined) delete process.env.RDMA_RPC_ADDON;
    copyFileSync(join(dirname(addonPath()), 'rdma_rpc_perf'), copy);
    process.env.RDMA_RPC_ADDON = join(folder, 'rdma_rpc.node');
    chmodSync(copy, 0o644);
    await expect(Program.open(options)).rejects.toThrow(/must be allowed to be executed.* \(EACCES\)/);
  });
});

const endless = ['--fabric', 'shm', '-D', '600', '-e'];

test('a killed measuring program ends the test at both sides with a sentence', async () => {
  const server = await listener([]);
  const client = run('perf', 'send_lat', `127.0.0.1:${server.port}`, ...endless);
  let program = 0;
  await until(() => {
    program = programOf(server.pid);
    return program !== 0 && measures(program);
  });
  process.kill(program, 'SIGKILL');
  const [here, there] = await Promise.all([server.ended, client]);
  expect(here.code).toBe(1);
  expect(here.errors).toMatch(/error: the program that measures, .*rdma_rpc_perf, has ended \(SIGKILL\)/);
  expect(there.code).toBe(1);
  expect(there.errors).toMatch(/error: .*has ended \(SIGKILL\)/);
});

test('the measuring program ends with its command when that is killed', async () => {
  const server = await listener([]);
  const client = run('perf', 'send_lat', `127.0.0.1:${server.port}`, ...endless);
  let program = 0;
  await until(() => {
    program = programOf(server.pid);
    return program !== 0;
  });
  server.kill();
  await until(() => !lives(program));
  expect((await client).code).toBe(1);
});
