/**
 * Tests `rdma-rpc trace` on real processes: while they run, while they are stopped, and from the file that a
 * failing session leaves.
 */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Channel, createChannel, createClient } from 'rdma-rpc';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { TraceEvent } from '../../../cli/trace/events.ts';
import { readEvents } from '../../../runtime/counters/events.ts';
import { eventRowBytes } from '../../../runtime/native/event-row.ts';
import { caught, until } from '../../outcomes.ts';
import { EchoDefinition } from '../../runtime/gen/echo.rdma.ts';
import { ServerProcess } from '../../runtime/process/processes.ts';
import { run } from '../command.ts';
import { expectSchema } from '../schemas.ts';

interface Printed {
  readonly pid: number;
  readonly reason?: string;
  readonly contexts: readonly { readonly fabric: string; readonly sessions: readonly object[] }[];
  readonly events: readonly TraceEvent[];
}

let folder: string;
let server: ServerProcess;
let channel: Channel;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-trace-'));
  const env = { ...process.env, RDMA_RPC_TRACE_FOLDER: join(folder, 'failed') };
  server = await ServerProcess.start('127.0.0.1:0', {}, { env });
  channel = createChannel(server.address, { fabric: 'shm' });
  await createClient(EchoDefinition, channel).echo({ text: 'x' });
});
afterEach(async () => {
  await channel.close();
  await server.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

const pid = (): string => String(server.child.pid);

/**
 * Returns the number of requests that have arrived at a process. Such requests are rows of kind frame-in
 * whose type is that of a request.
 */
function requestsOf(pid: number): number {
  const rows = readEvents(pid).contexts[0]?.rows ?? new Uint8Array();
  return rows.filter((byte, at) => at % eventRowBytes === 12 && byte === 1 && rows[at + 1] === 1).length;
}

async function json(...args: string[]): Promise<Printed> {
  const { code, out, errors } = await run('trace', ...args, '--json');
  expect({ code, errors }).toEqual({ code: 0, errors: '' });
  return expectSchema<Printed>('trace', JSON.parse(out) as Printed);
}

describe('the trace of a running process', () => {
  test('shows a call as its request, end and answer, with the names of its method and session', async () => {
    const { events, contexts, ...whose } = await json(pid());
    expect(whose).toMatchObject({ pid: server.child.pid });
    expect(contexts).toMatchObject([{ fabric: 'shm', sessions: [{ side: 'server' }] }]);
    expect(events.filter(({ kind }) => kind === 'state').map(({ state }) => state)).toEqual([
      'connecting',
      'ready',
    ]);
    const [call] = events.filter(({ frame }) => frame === 'request');
    const story = events.filter((event) => event.call === call!.call);
    expect(story).toMatchObject([
      { kind: 'frame-in', frame: 'request', method: call!.method },
      { kind: 'settle', good: true, method: call!.method },
      { kind: 'frame-out', frame: 'response', status: 'OK', method: call!.method },
    ]);
    expect(call!.method).toMatch(/Echo\/Echo$/);
  });

  test('is read from a file that is cut off, up to the end of the file', async () => {
    const path = join(folder, 'saved.trace');
    expect(await run('trace', pid(), '--save', path)).toMatchObject({ code: 0 });
    const { events } = await json(path);
    truncateSync(path, statSync(path).size - eventRowBytes - 1);
    const { code, out, errors } = await run('trace', path, '--json');
    expect(errors).toContain(`${path} is cut off: 2 events are missing at its end, as when a process dies`);
    const cut = expectSchema<Printed>('trace', JSON.parse(out) as Printed);
    expect([code, cut.events]).toEqual([0, events.slice(0, -2)]);
  });

  test('is filtered by flags, and --last selects the last of these events', async () => {
    await createClient(EchoDefinition, channel).echo({ text: 'y' });
    const { events } = await json(pid());
    const [first] = events.filter(({ frame }) => frame === 'request');
    const of = async (...flags: string[]) => (await json(pid(), ...flags)).events;
    const ends = events.filter(({ kind }) => kind === 'settle' || kind === 'state');
    expect(await of('--kind', 'settle,state')).toEqual(ends);
    expect(await of('--kind', 'settle', '--kind', 'state')).toEqual(ends);
    // A target of one kind must not be given where another kind is expected.
    expect((await json('--kind', 'settle', pid())).events).toEqual(
      events.filter(({ kind }) => kind === 'settle'),
    );
    expect(await of('--call', first!.call!)).toEqual(events.filter(({ call }) => call === first!.call));
    expect(await of('--session', String(first!.session))).toEqual(events);
    expect(await of('--session', '1')).toEqual([]);
    expect(await of('--kind', 'settle', '--last', '1')).toEqual(
      events.filter(({ kind }) => kind === 'settle').slice(-1),
    );
    expect(await of('--last', '0')).toEqual([]);
  });

  test('shows the session, the time and the event in each line', async () => {
    const { code, out } = await run('trace', server.address);
    expect(code).toBe(0);
    expect(out).toContain(`process ${pid()}  `);
    expect(out).toMatch(/^session \d+ \(server, shm, .+\)$/m);
    expect(out).toMatch(/^[\d:.]{12} .+ us {2}\d+ +<- frame +request +\d+\.\d+ +\S+Echo\/Echo +\d+ B/m);
    expect(out).toMatch(/settle +\d+\.\d+ +\S+Echo\/Echo +good +[\d.]+ us$/m);
  });

  test('can be read while the process is stopped', async () => {
    server.child.kill('SIGSTOP');
    const { events } = await json(pid());
    server.child.kill('SIGCONT');
    expect(events.some(({ kind }) => kind === 'settle')).toBe(true);
  });

  test('is written to a file by --save, and as a file for browsers by --chrome', async () => {
    const [saved, chrome] = [join(folder, 'a.trace'), join(folder, 'a.json')];
    expect(await run('trace', pid(), '--save', saved, '--chrome', chrome)).toEqual({
      code: 0,
      out: '',
      errors: '',
    });
    expect((await json(saved)).events).toEqual((await json(pid())).events);
    const { traceEvents } = JSON.parse(readFileSync(chrome, 'utf8')) as {
      traceEvents: { name: string; ph: string; ts?: number; id?: string }[];
    };
    const spans = traceEvents.filter(({ name, ph }) => name.endsWith('Echo/Echo') && ph !== 'i');
    expect(spans.map(({ ph }) => ph)).toEqual(['b', 'e']);
    expect(spans[0]!.ts).toBeLessThanOrEqual(spans[1]!.ts!);
    for (const { ph, ts } of traceEvents) if (ph !== 'M') expect(Number.isFinite(ts)).toBe(true);
  });
});

describe('the trace of a session that fails', () => {
  const files = (): string[] => {
    const of = join(folder, 'failed');
    return existsSync(of) ? readdirSync(of).map((name) => join(of, name)) : [];
  };
  const requests = (): number => requestsOf(server.child.pid!);
  test('is a file with its last events and the reason; a closed session leaves no file', async () => {
    const other = createChannel(server.address, { fabric: 'shm' });
    await createClient(EchoDefinition, other).echo({ text: 'x' });
    await other.close();
    const before = requests();
    const held = caught(
      createClient(EchoDefinition, channel).behave({ text: 'hang' }, { timeoutMs: 60_000 }),
    );
    await until(() => requests() > before);
    expect(files()).toEqual([]);
    await channel.close();
    await held;
    await until(() => files().length === 1);
    // The name contains the time, because process ids are reused.
    expect(files()[0]).toMatch(/rdma-rpc-\d+-0-\d{13}-1\.trace$/);
    const { events, reason } = await json(files()[0]!);
    expect(reason).toBe('the channel was closed');
    const failed = events.find(({ kind }) => kind === 'ended');
    expect(failed).toMatchObject({ reason });
    expect(events.filter(({ frame }) => frame === 'request').at(-1)?.method).toMatch(/Behave$/);
    expect((await run('trace', files()[0]!)).out).toContain('written because: the channel was closed');
  });
});

describe('the option for trace files', () => {
  test.each(['of its own', ''])('overrides the environment variable: %j', async (name) => {
    const [own, others] = [name === '' ? '' : join(folder, name), join(folder, 'others')];
    const env = { ...process.env, RDMA_RPC_TRACE_FOLDER: others };
    const one = await ServerProcess.start('127.0.0.1:0', { traceFolder: own }, { env });
    const session = createChannel(one.address, { fabric: 'shm' });
    await createClient(EchoDefinition, session).echo({ text: 'x' });
    const held = caught(
      createClient(EchoDefinition, session).behave({ text: 'hang' }, { timeoutMs: 60_000 }),
    );
    await until(() => requestsOf(one.child.pid!) > 1);
    await session.close();
    await held;
    if (own !== '') await until(() => existsSync(own) && readdirSync(own).length === 1);
    await one.kill('SIGTERM');
    expect(existsSync(others)).toBe(false);
  });
});

describe('a target that cannot be shown', () => {
  const place = mkdtempSync(join(tmpdir(), 'rdma-rpc-trace-'));
  const pipe = join(place, 'pipe');
  execFileSync('mkfifo', [pipe]);
  afterAll(() => rmSync(place, { recursive: true }));

  test.each([
    ['999999999', 1, /process 999999999 does not exist/],
    ['1', 1, /process 1 /],
    ['nonsense', 2, /nonsense is neither a file, a PID nor an address/],
    ['127.0.0.1:1', 1, /listens at 127\.0\.0\.1:1/],
    ['/dev/null', 1, /\/dev\/null is not a file/],
    ['/tmp', 1, /\/tmp is not a file|illegal operation on a directory/],
    ['package.json', 1, /package\.json is not a trace of rdma-rpc/],
    [pipe, 1, /pipe is not a file/],
  ])('%s: exit code %i and one sentence', async (target, expected, sentence) => {
    const { code, errors } = await run('trace', target);
    expect(code).toBe(expected);
    expect(errors).toMatch(sentence);
    expect(errors.trim().split('\n')).toHaveLength(1);
    expectSchema('trace', JSON.parse((await run('trace', target, '--json')).out));
  });
  test.each([
    ['--kind', 'nothing'],
    ['--kind', 'settle,nothing'],
    ['--call', '12'],
    ['--session', 'x'],
    ['--last', '-1'],
  ])('%s %s is refused', async (flag, value) => {
    expect(await run('trace', pid(), flag, value)).toMatchObject({ code: 2 });
  });
  test('a file that cannot be written is named', async () => {
    writeFileSync(join(folder, 'file'), '');
    const { code, errors } = await run('trace', pid(), '--save', join(folder, 'file', 'below'));
    expect(code).toBe(1);
    expect(errors).toContain(join(folder, 'file', 'below'));
  });
});
