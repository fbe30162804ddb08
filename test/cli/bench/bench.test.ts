/**
 * Runs `rdma-rpc bench` as a user does, with servers in this process, and tests its output, its files and its
 * errors.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createNetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server as GrpcServer, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import { createServer, RpcError, type Server, Status } from 'rdma-rpc';
import { toGrpcJsHandlers } from 'rdma-rpc/grpc/server';
import { addReflection } from 'rdma-rpc/reflection';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HistogramLogReader } from '#hdr-histogram';
import { alphaReflection } from '../../../cli/bench/grpc-reflection.ts';
import type { Result } from '../../../cli/bench/result.ts';
import { summaryText } from '../../../cli/bench/summary.ts';
import type {
  ServerReflectionRequest,
  ServerReflectionResponseInit,
} from '../../../runtime/services/gen/grpc/reflection/v1/reflection.rdma.ts';
import { root } from '../../house/tree.ts';
import { EchoDefinition } from '../../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../../stream/gen/stream.rdma.ts';
import { type Outcome, run } from '../command.ts';
import { expectSchema } from '../schemas.ts';

const method = 'test.echo.Echo/Echo';
const proto = join(root, 'test/runtime/protos/echo.proto');
const folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-bench-'));
let server: Server;
let address: string;
beforeAll(async () => {
  server = createServer()
    .add(EchoDefinition, {
      echo: (r) => r,
      behave: () => {
        throw new RpcError(Status.RESOURCE_EXHAUSTED, 'full <b>');
      },
    })
    .add(StreamsDefinition, {
      async *count() {
        yield {};
        yield {};
      },
      async sum(requests: AsyncIterable<unknown>) {
        let count = 0;
        for await (const _ of requests) ++count;
        return { number: count };
      },
    } as never);
  addReflection(server);
  address = await server.listen('127.0.0.1:0');
});
afterAll(async () => {
  await server.shutdown({ graceMs: 0 });
  rmSync(folder, { recursive: true, force: true });
});

async function bench(...args: string[]): Promise<Result & { readonly exitCode: number }> {
  const { code, out, errors } = await run('bench', address, ...args, '--json');
  expect(errors).toBe('');
  return { ...expectSchema('bench', JSON.parse(out) as Result), exitCode: code };
}

test('a closed loop makes the requested number of calls, and reports no corrected latencies', async () => {
  const result = await bench(method, '-n', '300', '-c', '5', '-d', '{"text":"hi"}');
  expect(result).toMatchObject({
    exitCode: 0,
    target: { address, method, protocol: 'rdma-rpc', fabric: 'shm' },
    load: { loop: 'closed', concurrency: 5, connections: 1, total: 300 },
    calls: { begun: 300, ok: 300, failed: 0, skipped: 0, late: 0, unsent: 0 },
    bytes: { requests: 1200, responses: 1200 },
    latencyUs: { raw: { count: 300 }, corrected: null },
    travelled: { requests: { bulk: 0, sent: 300 }, responses: { bulk: 0, sent: 300 } },
    codes: { OK: 300 },
    errors: [],
  });
  const sum = (name: 'histogram' | 'intervals', of: (each: never) => number): number =>
    (result[name] as readonly never[]).reduce((all, each) => all + of(each), 0);
  expect(sum('histogram', ({ raw }: { raw: number }) => raw)).toBe(300);
  expect(sum('intervals', ({ calls }: { calls: number }) => calls)).toBe(300);
});

test('an open loop follows the rate, and reports corrected latencies', async () => {
  const flags = ['-n', '100', '--rps', '500', '--connections', '2', '--skip-first', '20'];
  const result = await bench(method, ...flags);
  expect(result).toMatchObject({
    load: { loop: 'open', connections: 2, schedule: { kind: 'const', start: 500 } },
    calls: { begun: 100, ok: 80, skipped: 20 },
    latencyUs: { corrected: { count: 80 } },
  });
  expect(result.elapsedMs).toBeGreaterThan(195);
  const { raw, corrected } = result.latencyUs;
  expect(corrected!.max).toBeGreaterThanOrEqual(raw.max);
});

test.each([
  ['shm', 100_000, { bulk: 10, sent: 0 }],
  ['tcp', 100_000, { bulk: 10, sent: 0 }],
  ['tcp', 100, { bulk: 0, sent: 10 }],
])('over %s it sends payloads of %i bytes that differ', async (fabric, bytes, requests) => {
  const data = `{"payload":"{{randomBytes ${bytes}}}"}`;
  const result = await bench(method, '-n', '10', '--fabric', fabric, '-d', data);
  expect(result).toMatchObject({ target: { fabric }, travelled: { requests, responses: requests } });
});

test('a call of a stream sends all messages of the data, and ends with its last answer', async () => {
  const many = await bench('test.stream.Streams/Sum', '-n', '5', '-d', '[{},{},{}]');
  expect(many).toMatchObject({ exitCode: 0, calls: { ok: 5 }, travelled: { requests: { sent: 15 } } });
  const answers = await bench('test.stream.Streams/Count', '-n', '5');
  expect(answers).toMatchObject({ exitCode: 0, calls: { ok: 5 }, travelled: { responses: null } });
});

test('failed calls are counted by code and by message, and the exit code is 1', async () => {
  const result = await bench('test.echo.Echo/Behave', '-n', '20');
  expect(result).toMatchObject({
    exitCode: 1,
    calls: { ok: 0, failed: 20 },
    codes: { RESOURCE_EXHAUSTED: 20 },
    errors: [{ code: 'RESOURCE_EXHAUSTED', message: expect.stringContaining('full <b>'), count: 20 }],
  });
});

test('without any answer no latencies are shown, not even 0 us', async () => {
  const { code, out } = await run('bench', address, 'test.echo.Echo/Behave', '-n', '20');
  expect(code).toBe(1);
  expect(out).toContain('Latency: none, because no call was answered with OK');
  expect(out).not.toMatch(/0 us/);
});

test('calls that never began have waited, so their latencies are shown even without an answer', async () => {
  const { latencyUs, histogram, exitCode, ...rest } = await bench(method, '-n', '20');
  const raw = { mean: 0, p50: 0, p90: 0, p99: 0, p99_9: 0, p99_99: 0, max: 0 };
  const waited = { ...latencyUs, raw: { ...latencyUs.raw, ...raw }, corrected: latencyUs.raw };
  const bars = histogram.map((bar) => ({ ...bar, raw: 0, corrected: bar.raw }));
  const text = summaryText({ ...rest, latencyUs: waited, histogram: bars });
  expect(text).toMatch(/^Latency:\n +raw +corrected$/m);
  expect(exitCode).toBe(0);
});

test('it writes every call, a log of HdrHistogram, and a page to files', async () => {
  const [csv, hdr, html] = ['calls.csv', 'log.hlog', 'page.html'].map((name) => join(folder, name));
  const flags = ['--csv', csv!, '--hdr-log', hdr!, '--html', html!, '--rps', '1000'];
  await bench('test.echo.Echo/Echo', '-n', '50', ...flags);
  const rows = readFileSync(csv!, 'utf8').trimEnd().split('\n');
  expect(rows[0]).toBe('intended_ms,started_ms,raw_us,corrected_us,code');
  expect(rows).toHaveLength(51);
  const log = readFileSync(hdr!, 'utf8');
  expect(log.match(/^Tag=\w+/gm)).toEqual(['Tag=corrected']);
  expect(new HistogramLogReader(log).nextIntervalHistogram()!.totalCount).toBe(50);
  const page = readFileSync(html!, 'utf8');
  expect(page).toMatch(/^<!doctype html>/);
  expect(page).not.toMatch(/(src|href)=/);
});

test('the screen is as expected, except for the times', async () => {
  const { code, out } = await run('bench', address, method, '-n', '40', '-c', '1', '-d', '{"text":"hi"}');
  expect(code).toBe(0);
  const screen = out
    .replace(address, 'ADDRESS')
    .replace(/ {2}< .*\n/g, '')
    .replace(/in [\d.]+ m?s/, 'in TIME')
    .replace(/[\d.,]+ calls\/s/, 'N calls/s')
    .replace(/^( {2}(?:mean|p[\d.]+|max) +)[\d.]+ (?:us|ms)$/gm, '$1TIME')
    .replace(/ +TIME$/gm, ' TIME');
  expect(`\n${screen}`).toMatchInlineSnapshot(`
    "
    test.echo.Echo/Echo at ADDRESS over shm
    closed loop, 1 worker, 1 connection

      calls      40 OK, 0 failed in TIME
      rate       N calls/s
      bytes      160 bytes out, 160 bytes in

    Latency:
      mean TIME
      p50 TIME
      p90 TIME
      p99 TIME
      p99.9 TIME
      p99.99 TIME
      max TIME

    Histogram:

    How the messages were transferred:
      requests   40 in a SEND, 0 bulk (0 %)
      responses  40 in a SEND, 0 bulk (0 %)
      own frames 40 inline, 0 eager (0 %)

    A closed loop waits for slow answers and therefore measures fewer of them; use --rps to measure the latency that users see.
    "
  `);
});

describe('gRPC', () => {
  const grpc = new GrpcServer();
  let port: number;
  beforeAll(async () => {
    grpc.addService(
      EchoDefinition.methods as never,
      toGrpcJsHandlers(EchoDefinition, { echo: (r) => r, behave: () => ({}) }) as never,
    );
    const credentials = ServerCredentials.createInsecure();
    port = await new Promise<number>((resolve, reject) =>
      grpc.bindAsync('127.0.0.1:0', credentials, (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      ),
    );
  });
  afterAll(() => grpc.forceShutdown());

  test('makes the same load on a server of grpc-js', async () => {
    const flags = [
      '--grpc',
      '--proto',
      proto,
      '-n',
      '100',
      '--connections',
      '2',
      '-d',
      '{"text":"hi"}',
      '--json',
    ];
    const { code, out, errors } = await run('bench', `127.0.0.1:${port}`, method, ...flags);
    expect({ code, errors }).toEqual({ code: 0, errors: '' });
    expect(expectSchema('bench', JSON.parse(out) as Result)).toMatchObject({
      target: { protocol: 'grpc' },
      calls: { ok: 100 },
      bytes: { requests: 400, responses: 400 },
      travelled: null,
    });
  });

  test('finds the method by v1alpha reflection of an older server', async () => {
    const older = new GrpcServer();
    const asked: string[] = [];
    const answer = (
      call: ServerDuplexStream<ServerReflectionRequest, ServerReflectionResponseInit>,
    ): void => {
      call.on('data', ({ messageRequest }: ServerReflectionRequest) => {
        asked.push(messageRequest!.case!);
        const { file } = EchoDefinition;
        const imports = file.dependencies.map(({ bytes }) => bytes);
        call.write({
          messageResponse: {
            case: 'fileDescriptorResponse',
            value: { fileDescriptorProto: [file.bytes, ...imports] },
          },
        });
      });
      call.on('end', () => call.end());
    };
    older.addService(alphaReflection.methods as never, { serverReflectionInfo: answer } as never);
    older.addService(
      EchoDefinition.methods as never,
      toGrpcJsHandlers(EchoDefinition, { echo: (r) => r, behave: () => ({}) }) as never,
    );
    const bound = await new Promise<number>((resolve, reject) =>
      older.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, to) =>
        error === null ? resolve(to) : reject(error),
      ),
    );
    try {
      const flags = ['--grpc', '-n', '10', '-d', '{"text":"hi"}', '--json'];
      const { code, out, errors } = await run('bench', `127.0.0.1:${bound}`, method, ...flags);
      expect({ code, errors }).toEqual({ code: 0, errors: '' });
      expect(JSON.parse(out)).toMatchObject({ calls: { ok: 10 } });
      expect(asked).toContain('fileContainingSymbol');
    } finally {
      older.forceShutdown();
    }
  });

  test('requires files when the server has no reflection', async () => {
    const outcome = await run('bench', `127.0.0.1:${port}`, method, '--grpc');
    expect(outcome).toEqual({
      code: 1,
      out: '',
      errors: 'error: UNIMPLEMENTED: this server has no reflection: give --proto or --protoset\n',
    });
  });

  test('reports a server of the other protocol', async () => {
    const ours = await run('bench', address, method, '--grpc', '--timeout', '300');
    expect(ours).toMatchObject({
      code: 1,
      out: '',
      errors: expect.stringMatching(/^error: UNAVAILABLE: no gRPC server .*\n$/),
    });
    const theirs = await run('bench', `127.0.0.1:${port}`, method, '--timeout', '2000');
    expect(theirs).toMatchObject({ code: 1, out: '', errors: expect.stringMatching(/^error: .+\n$/) });
  });
});

describe('errors are one sentence without a stack', () => {
  const refused = (outcome: Outcome, code: number, errors: RegExp): void => {
    expect(outcome).toMatchObject({ code, out: '', errors: expect.stringMatching(errors) });
    expect(outcome.errors).not.toMatch(/\n\s+at /);
  };

  test.each<[string[], RegExp]>([
    [['nowhere', method], /^error: .*address "nowhere": not understood/],
    [['127.0.0.1:1'], /missing required argument 'method'/],
    [['127.0.0.1:1', method, '-c', '0'], /Give calls from 1 to 100000/],
    [['127.0.0.1:1', method, '-z', '10'], /Give a time such as 500ms/],
    [['127.0.0.1:1', method, '--fabric', 'sim'], /Allowed choices/],
    [['127.0.0.1:1', method, '--load-step', '5'], /^error: --load-step needs --load-schedule/],
    [['127.0.0.1:1', method, '--load-schedule', 'const'], /^error: --load-schedule const needs --rps/],
    [
      ['127.0.0.1:1', method, '--load-schedule', 'step', '--load-start', '5', '--load-step', '5'],
      /^error: --load-schedule step needs --load-step-duration/,
    ],
    [
      ['127.0.0.1:1', method, '--load-schedule', 'line', '--load-start', '5', '--load-step', '-1'],
      /needs an end: --load-end/,
    ],
    [['127.0.0.1:1', method, '--grpc', '--fabric', 'tcp'], /^error: --fabric has no meaning with --grpc/],
  ])('exit code 2: %j', async (args, errors) => {
    refused(await run('bench', ...args), 2, errors);
  });

  test.each<[string, string[], RegExp]>([
    ['an unknown method', ['test.echo.Echo/Ehco'], /did you mean Echo\?/],
    ['a request with an unknown field', [method, '-d', '{"txet":1}'], /did you mean text\?/],
    ['a missing file', [method, '-D', '/nowhere/data.json'], /cannot be read: ENOENT/],
    ['a file that cannot be written', [method, '--csv', '/nowhere/calls.csv'], /cannot be written: ENOENT/],
    [
      'the same file for two outputs',
      [method, '--csv', join(folder, 'x'), '--html', join(folder, 'x')],
      /given twice/,
    ],
  ])('exit code 1: %s', async (_, args, errors) => {
    refused(await run('bench', address, ...args), 1, errors);
  });

  test('exit code 1: no listener, or a silent one', async () => {
    refused(await run('bench', '127.0.0.1:1', method), 1, /ECONNREFUSED/);
    const silent = createNetServer();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as { port: number };
    refused(await run('bench', `127.0.0.1:${port}`, method, '--timeout', '50'), 1, /no answer within 50 ms/);
    silent.close();
  });
});
