/**
 * Tests the commands that query a server: health, list, describe, call. The tests run the built command as a
 * user would, with a server in this process.
 */
import { createServer as createNetServer } from 'node:net';
import { createServer, type HandlerContext, Metadata, RpcError, type Server, Status } from 'rdma-rpc';
import { BadRequest, detail } from 'rdma-rpc/details';
import { addHealth, type Health } from 'rdma-rpc/health';
import { addReflection } from 'rdma-rpc/reflection';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { jsonText, printable, printableLine } from '../../cli/output.ts';
import { number$ as number, Proto2Definition } from '../codegen/gen/proto2.rdma.ts';
import { EchoDefinition, EchoMessage } from '../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { type Outcome, run } from './command.ts';

let server: Server;
let health: Health;
let address: string;
beforeEach(async () => {
  server = createServer().add(EchoDefinition, {
    echo: (r) => r,
    behave: (_, { metadata }) => ({
      text: [...metadata].map(([key, value]) => `${key}: ${value}`).join(', '),
    }),
  });
  health = addHealth(server);
  address = await server.listen('127.0.0.1:0');
});
afterEach(() => server.shutdown({ graceMs: 0 }));

describe('rdma-rpc health', () => {
  test.each<[string, (h: Health) => unknown, string[], Outcome]>([
    ['reports a server that serves', () => 0, [], { code: 0, out: 'SERVING\n', errors: '' }],
    ['reports a service that serves', () => 0, ['test.echo.Echo'], { code: 0, out: 'SERVING\n', errors: '' }],
    [
      'reports a service that does not serve',
      (h) => h.setStatus('', 'NOT_SERVING'),
      [],
      { code: 1, out: 'NOT_SERVING\n', errors: '' },
    ],
    [
      'reports an unknown service',
      () => 0,
      ['nobody'],
      { code: 1, out: '', errors: 'error: NOT_FOUND: unknown service nobody\n' },
    ],
  ])('%s', async (_, change, args, outcome) => {
    change(health);
    expect(await run('health', address, ...args)).toEqual(outcome);
  });

  test('names the missing service of a server', async () => {
    const plain = createServer();
    expect(await run('health', await plain.listen('127.0.0.1:0'))).toEqual({
      code: 1,
      out: '',
      errors:
        'error: UNIMPLEMENTED: this server has no health service: addHealth(server) of rdma-rpc/health adds it\n',
    });
    await plain.shutdown({ graceMs: 0 });
  });

  test('reports an address without a listener', async () => {
    await server.shutdown();
    expect(await run('health', address)).toMatchObject({
      code: 1,
      out: '',
      errors: /UNAVAILABLE.*ECONNREFUSED/,
    });
  });

  test('ends at its time limit with a silent listener', async () => {
    const silent = createNetServer();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as { port: number };
    const outcome = await run('health', `127.0.0.1:${port}`, '--timeout', '50');
    expect(outcome).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/no answer within 50 ms \(--timeout\)/),
    });
    silent.close();
  });

  test.each([
    [['nowhere'], /address "nowhere": not understood/],
    [['unix:/x', '--timeout', '0'], /Give milliseconds from 1 to 600000/],
    [[], /missing required argument 'address'\n\(rdma-rpc health --help lists its options\)/],
  ])('ends with exit code 2 for the wrong command line %j', async (args, errors) => {
    expect(await run('health', ...args)).toMatchObject({ code: 2, errors: expect.stringMatching(errors) });
  });
});

describe('with reflection', () => {
  beforeEach(() => addReflection(server));

  test('rdma-rpc list prints services, and the methods of one', async () => {
    expect((await run('list', address)).out).toBe(
      'grpc.health.v1.Health\ngrpc.reflection.v1.ServerReflection\ntest.echo.Echo\n',
    );
    expect((await run('list', address, 'grpc.health.v1.Health')).out).toBe(
      'grpc.health.v1.Health/Check\ngrpc.health.v1.Health/List\ngrpc.health.v1.Health/Watch\n',
    );
  });

  test.each([
    [
      'grpc.health.v1.Health/Watch',
      'rpc Watch(grpc.health.v1.HealthCheckRequest) returns (stream grpc.health.v1.HealthCheckResponse);\n',
    ],
    ['grpc.health.v1.HealthCheckRequest', 'message HealthCheckRequest {\n  string service = 1;\n}\n'],
    ['grpc.health.v1.HealthListRequest', 'message HealthListRequest {}\n'],
    [
      'grpc.health.v1.HealthListResponse.statuses',
      'message HealthListResponse {\n  map<string, grpc.health.v1.HealthCheckResponse> statuses = 1;\n}\n',
    ],
  ])('rdma-rpc describe %s', async (name, text) => {
    const head = '\nsyntax = "proto3";\n\npackage grpc.health.v1;\n\n';
    const out = `// grpc/health/v1/health.proto${name.includes('/') ? ', in service grpc.health.v1.Health\n' : head}${text}`;
    expect(await run('describe', address, name)).toMatchObject({ code: 0, out });
  });

  test.each<[string, string[], string]>([
    [
      'a request',
      ['test.echo.Echo/Echo', '{"text":"hi","payload":"AAEC"}'],
      '{\n  "text": "hi",\n  "payload": "AAEC"\n}\n',
    ],
    ['no request, which means an empty one', ['test.echo.Echo/Echo'], '{}\n'],
    [
      'metadata',
      ['test.echo.Echo/Behave', '{}', '-m', 'a=1', '-m', 'b=2=3'],
      '{\n  "text": "a: 1, b: 2=3"\n}\n',
    ],
    [
      'a stream of requests, answered by a stream',
      [
        'grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
        '{"fileByFilename":"x"}\n{"allExtensionNumbersOfType":"y"}',
      ],
      '{"originalRequest":{"fileByFilename":"x"},"errorResponse":{"errorCode":5,"errorMessage":"unknown file x"}}\n{"originalRequest":{"allExtensionNumbersOfType":"y"},"errorResponse":{"errorCode":5,"errorMessage":"unknown message y"}}\n',
    ],
  ])('rdma-rpc call with %s', async (_, args, out) => {
    expect(await run('call', address, ...args)).toEqual({ code: 0, out, errors: '' });
  });

  test('rdma-rpc call with groups, and extensions in the answer', async () => {
    server.add(Proto2Definition, {
      get: ({ part }) => {
        const answer = { known: 1 };
        number.set(answer, BigInt(part?.piece[0]?.number ?? 0));
        return answer;
      },
    });
    const request = { id: 1, name: 'n', must: {}, part: { piece: [{ number: -5 }] } };
    const outcome = await run('call', address, 'lang.proto2.Proto2/Get', JSON.stringify(request));
    expect({ ...outcome, out: outcome.out === '' ? undefined : JSON.parse(outcome.out) }).toEqual({
      code: 0,
      errors: '',
      out: { known: 1, '[lang.proto2.number]': '-5' },
    });
  });

  test.each<[string, string[], number, RegExp]>([
    [
      'a misspelt field',
      ['test.echo.Echo/Echo', '{"txt":1}'],
      1,
      /^error: test\.echo\.EchoMessage: unknown field "txt"; did you mean text\?\n$/,
    ],
    [
      'an unknown field',
      ['test.echo.Echo/Echo', '{"frobnicate":1}'],
      1,
      /unknown field "frobnicate"; available: text, payload.*\n$/,
    ],
    ['text that is not JSON', ['test.echo.Echo/Echo', '{'], 1, /the request is not JSON/],
    ['a line that is no JSON', ['test.echo.Echo/Echo', '{}\n{'], 1, /line 2 of the request is not JSON/],
    ['two requests', ['test.echo.Echo/Echo', '{}\n{}'], 1, /takes one request/],
    [
      'a method that is not implemented',
      ['test.echo.Echo/Missing'],
      1,
      /UNIMPLEMENTED: test.echo.Echo\/Missing/,
    ],
    [
      'a misspelt method',
      ['test.echo.Echo/Ehco'],
      1,
      /^error: test\.echo\.Echo has no method Ehco; did you mean Echo\?\n$/,
    ],
    ['an unknown method', ['test.echo.Echo/Frobnicate'], 1, /has no method Frobnicate; available: .*Echo/],
    [
      'a misspelt service',
      ['test.ehco.Echo/Echo'],
      1,
      /^error: the server has no service test\.ehco\.Echo; did you mean test\.echo\.Echo\?\n$/,
    ],
    ['a service without its package', ['Echo/Echo'], 1, /no service Echo; did you mean test\.echo\.Echo\?/],
    [
      'a misspelt service without its package',
      ['Heatlh/Check'],
      1,
      /did you mean grpc\.health\.v1\.Health\?/,
    ],
    [
      'a service',
      ['test.echo.Echo'],
      1,
      /is a service; give Service\/Method; available: test\.echo\.Echo\/Echo/,
    ],
    ['a method with a dot', ['test.echo.Echo.Echo'], 1, /did you mean test\.echo\.Echo\/Echo\?/],
    [
      'no method at all',
      ['frobnicate'],
      1,
      /give Service\/Method; available: test\.echo\.Echo\/…, .*grpc\.health\.v1\.Health\/…/,
    ],
    ['a misspelt flag', ['test.echo.Echo/Echo', '--timeot', '5'], 2, /Did you mean --timeout\?/],

    ['metadata without a key', ['test.echo.Echo/Echo', '{}', '-m', '=1'], 2, /Give key=value/],
  ])('rdma-rpc call with %s', async (_, args, code, errors) => {
    expect(await run('call', address, ...args)).toMatchObject({
      code,
      errors: expect.stringMatching(errors),
    });
  });

  describe('rdma-rpc call prints on stderr', () => {
    let answer: (context: HandlerContext) => unknown;
    beforeEach(async () => {
      await server.shutdown({ graceMs: 0 });
      server = createServer().add(EchoDefinition, {
        echo: (_, context) => answer(context) as never,
      });
      server.add(StreamsDefinition, {
        async *count(_, context) {
          context.header.set('kind', 'stream');
          yield { number: 1 };
          answer(context);
        },
      });
      addReflection(server);
      address = await server.listen('127.0.0.1:0');
    });
    const bytes = Uint8Array.of(1, 2, 250);

    test('header and trailer with -v', async () => {
      answer = ({ header, trailer }) => {
        header.set('request-id', '7');
        header.set('token-bin', bytes);
        trailer.set('took-ms', '3');
        return { text: 'hi' };
      };
      const { errors, ...shown } = await run(
        ...['call', address, 'test.echo.Echo/Echo', '{"text":"ab"}', '-v', '-m', 'a=1'],
      );
      expect(shown).toEqual({ code: 0, out: '{\n  "text": "hi"\n}\n' });
      expect(
        errors
          .replace(/pid \d+/, 'pid 1')
          .replace(/[\d.]+ ms/, '1.0 ms')
          .split('\n'),
      ).toEqual([
        expect.stringMatching(/^connected to .+ over shm, memory shown by window$/),
        "the session is 'none': the network must be trusted; the identity of the server is unknown",
        'rpc Echo(test.echo.EchoMessage) returns (test.echo.EchoMessage);',
        'sent a: 1',
        'header request-id: 7',
        'header token-bin: AQL6',
        'trailer took-ms: 3',
        'OK: 1 request (4 bytes), 1 answer (4 bytes), 1.0 ms',
        '',
      ]);
      expect(await run('call', address, 'test.echo.Echo/Echo')).toMatchObject({ code: 0, errors: '' });
    });

    test('the details of an error, and its trailer once', async () => {
      answer = ({ trailer }) => {
        trailer.set('from', 'here');
        throw new RpcError(Status.INVALID_ARGUMENT, 'who?', {
          details: [
            detail(BadRequest, { fieldViolations: [{ field: 'text', description: 'is empty' }] }),
            { type: EchoMessage, value: { text: 'of the server' } },
            { type: 'acme.Unknown', value: bytes },
            { type: 'google.rpc.RetryInfo', value: bytes },
          ],
        });
      };
      expect(await run('call', address, 'test.echo.Echo/Echo')).toEqual({
        code: 1,
        out: '',
        errors: [
          'error: INVALID_ARGUMENT: who?',
          '  google.rpc.BadRequest {"fieldViolations":[{"field":"text","description":"is empty"}]}',
          '  test.echo.EchoMessage {"text":"of the server"}',
          '  acme.Unknown 3 bytes: AQL6',
          '  google.rpc.RetryInfo 3 bytes: AQL6',
          'trailer from: here',
          '',
        ].join('\n'),
      });
    });

    test('metadata under a -bin key is base64, as it is shown', async () => {
      answer = ({ metadata, trailer }) => {
        trailer.set('back-bin', metadata.get('token-bin') as Uint8Array);
        return {};
      };
      expect(await run('call', address, 'test.echo.Echo/Echo', '-vm', 'Token-bin=AQL6')).toMatchObject({
        errors: expect.stringMatching(/\ntrailer back-bin: AQL6\n/),
        code: 0,
      });
      expect(await run('call', address, 'test.echo.Echo/Echo', '-m', 'token-bin=AQL!')).toMatchObject({
        errors: expect.stringMatching(/A key in -bin takes base64/),
        code: 2,
      });
    });

    test("the details of a stream's error once, as JSON", async () => {
      answer = () => {
        throw new RpcError(Status.ABORTED, 'enough', { details: [{ type: 'acme.Unknown', value: bytes }] });
      };
      expect(await run('call', address, 'test.stream.Streams/Count', '{}')).toMatchObject({
        errors: 'error: ABORTED: enough\n  acme.Unknown 3 bytes: AQL6\n',
      });
    });

    test("the details of a stream's error, after the messages on stdout", async () => {
      answer = () => {
        throw new RpcError(Status.ABORTED, 'enough', { trailer: new Metadata({ left: '2' }) });
      };
      expect(await run('call', address, 'test.stream.Streams/Count', '{}')).toEqual({
        code: 1,
        out: '{"number":1}\n',
        errors: 'error: ABORTED: enough\ntrailer left: 2\n',
      });
    });
  });

  test('an unknown name with the nearest known one', async () => {
    expect(await run('describe', address, 'no.Such')).toMatchObject({
      code: 1,
      errors: expect.stringMatching(
        /^error: the server declares no no\.Such; available: test\.echo\.EchoMessage, test\.echo\.Echo, /,
      ),
    });
    expect((await run('describe', address, 'test.echo.EchoMesage')).errors).toBe(
      'error: the server declares no test.echo.EchoMesage; did you mean test.echo.EchoMessage?\n',
    );
    expect((await run('describe', address, 'test.echo.Echo/Ehco')).errors).toMatch(
      /did you mean test\.echo\.Echo\.Echo\?/,
    );
    expect((await run('list', address, 'test.echo.EchoMessage')).errors).toMatch(/is not a service/);
    expect((await run('list', address, 'test.echo.Ecko')).errors).toBe(
      'error: test.echo.Ecko is not a service; did you mean test.echo.Echo?\n',
    );
  });
});

test('without reflection the error says how to add it', async () => {
  expect(await run('list', address)).toMatchObject({
    code: 1,
    errors: expect.stringMatching(/UNIMPLEMENTED: this server has no reflection: addReflection\(server\)/),
  });
});

test('text from a server cannot contain terminal commands', () => {
  expect(printable('a\x1b[2Jb\u009bc\x07\nd')).toBe('a\ufffd[2Jb\ufffdc\ufffd\nd');
  expect(printableLine('a\nerror: b\u202ec')).toBe('a\ufffderror: b\ufffdc');
});

test('JSON has the same values, and no raw terminal commands', () => {
  const value = { text: 'a\x1b\x7f\u009b31m\u2028\u202eb\n' };
  for (const indent of [undefined, 2]) {
    const text = jsonText(value, indent);
    expect(JSON.parse(text)).toEqual(value);
    expect(text).not.toMatch(/(?!\n)[\p{Cc}\p{Zl}\p{Bidi_Control}]/u);
  }
});

test('an answer is shown unchanged, and an error has one line', async () => {
  const evil = createServer();
  evil.add(EchoDefinition, {
    echo: ({ text }) => {
      if (text === '') throw new RpcError(Status.INTERNAL, 'bad\nOK: 1 request\x1b[2J');
      return { text };
    },
  });
  const at = await evil.listen('127.0.0.1:0');
  const files = ['--proto', 'test/runtime/protos/echo.proto'];
  const said = await run('call', at, 'test.echo.Echo/Echo', '{"text":"\\u009b2J"}', ...files);
  expect(said.out).toContain('\\u009b2J');
  expect(JSON.parse(said.out)).toMatchObject({ text: '\u009b2J' });
  expect(await run('call', at, 'test.echo.Echo/Echo', ...files)).toMatchObject({
    code: 1,
    errors: 'error: INTERNAL: bad\ufffdOK: 1 request\ufffd[2J\n',
  });
  await evil.shutdown();
});
