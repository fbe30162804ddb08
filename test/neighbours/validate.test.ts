/**
 * Tests rules of protovalidate on our calls. Messages that violate them are refused, on servers and clients,
 * with details. Messages without rules are not checked.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fromBinary } from '@bufbuild/protobuf';
import { ViolationsSchema } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js';
import {
  type Channel,
  createClient,
  createInProcessChannel,
  type Handlers,
  type RpcError,
  type ServiceDefinition,
  Status,
} from 'rdma-rpc';
import { BadRequest } from 'rdma-rpc/details';
import { type ValidationOptions, validation } from 'rdma-rpc/validate';
import { afterEach, describe, expect, test } from 'vitest';
import { GenerateError } from '../../codegen/diagnostic.ts';
import { generate } from '../../codegen/index.ts';
import { type RegisterRequestInit, SignupDefinition } from '../../examples/validate/gen/signup.rdma.ts';
import { startServer } from '../../examples/validate/server.ts';
import { workspace } from '../codegen/workspace.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const good = {
  email: 'ada@example.com',
  name: 'Ada',
  age: 36,
  interests: ['engines'],
  login: { case: 'password', value: 'correct horse battery' },
} as const;

let calls: unknown[] = [];
const handlers: Handlers<typeof SignupDefinition> = {
  register: (request) => ({ registered: calls.push(request) }),
  async registerAll(requests) {
    for await (const request of requests) calls.push(request);
    return { registered: calls.length };
  },
};
const open: Channel[] = [];
afterEach(async () => {
  for (const channel of open.splice(0)) await channel.close();
});
function channelTo(options?: ValidationOptions): Channel {
  calls = [];
  const channel = createInProcessChannel((server) => {
    if (options !== undefined) server.use(validation(options));
    server.add(SignupDefinition, handlers).add(EchoDefinition, { echo: (request) => request });
  });
  open.push(channel);
  return channel;
}
const failed = (call: Promise<unknown>): Promise<RpcError> =>
  call.then(
    () => expect.unreachable('it succeeded'),
    (error: RpcError) => error,
  );

describe('on a server', () => {
  const rows: [string, RegisterRequestInit, RegExp, string, string][] = [
    [
      'a format',
      { ...good, email: 'ada' },
      /the request breaks a rule: email: .*email.* \[string\.email\]$/,
      'email',
      'STRING_EMAIL',
    ],
    ['a length', { ...good, name: 'A' }, /name: .* \[string\.min_len\]/, 'name', 'STRING_MIN_LEN'],
    ['a range', { ...good, age: 7 }, /age: .* \[uint32\.gte_lte\]/, 'age', 'UINT32_GTE_LTE'],
    [
      'a list',
      { ...good, interests: ['a', 'a'] },
      /interests: .* \[repeated\.unique\]/,
      'interests',
      'REPEATED_UNIQUE',
    ],
    ['a oneof', { ...good, login: { case: undefined } }, /login: .*\[required\]/, 'login', 'REQUIRED'],
    [
      'inside of a oneof',
      { ...good, login: { case: 'password', value: 'short' } },
      /password: .*min_len/,
      'password',
      'STRING_MIN_LEN',
    ],
    [
      'the complete message',
      { ...good, email: 'ada.l@example.com', login: { case: 'password', value: 'ada.l@example.com' } },
      /breaks a rule: the password is the email address \[password\.not_email\]$/,
      '',
      'PASSWORD_NOT_EMAIL',
    ],
  ];
  test.each(rows)(
    'a request that breaks the rule of %s is INVALID_ARGUMENT',
    async (_, request, text, field, reason) => {
      const client = createClient(SignupDefinition, channelTo({}));
      const error = await failed(client.register(request));
      expect(error).toMatchObject({ code: Status.INVALID_ARGUMENT, message: expect.stringMatching(text) });
      expect(error.findDetails(BadRequest)[0]?.fieldViolations).toMatchObject([{ field, reason }]);
      expect(calls).toEqual([]);
    },
  );

  test('a valid request arrives unchanged', async () => {
    const client = createClient(SignupDefinition, channelTo({}));
    expect(await client.register(good)).toEqual({ registered: 1 });
    expect(calls).toMatchObject([good]);
  });

  test('the details are those of protovalidate, too', async () => {
    const client = createClient(SignupDefinition, channelTo({}));
    const { details } = await failed(client.register({ ...good, name: 'A', age: 7 }));
    const bytes = details.find(({ type }) => type === 'buf.validate.Violations')?.value;
    const { violations } = fromBinary(ViolationsSchema, bytes ?? new Uint8Array());
    expect(violations.map(({ ruleId }) => ruleId)).toEqual(['string.min_len', 'uint32.gte_lte']);
    expect(violations[0]?.field?.elements).toMatchObject([{ fieldName: 'name', fieldNumber: 2 }]);
  });

  test('only the first violation is reported, on request', async () => {
    const client = createClient(SignupDefinition, channelTo({ failFast: true }));
    const error = await failed(client.register({ ...good, name: 'A', age: 7 }));
    expect(error.findDetails(BadRequest)[0]?.fieldViolations).toHaveLength(1);
  });

  test('the text of many or long violations is limited', async () => {
    const client = createClient(SignupDefinition, channelTo({}));
    const error = await failed(
      client.register({
        email: 'x',
        name: '',
        age: 1,
        interests: ['b', 'b'],
        login: { case: 'password', value: '1' },
      }),
    );
    expect(error.rawMessage).toMatch(/; and \d more$/);
    for (const { value } of error.details) expect(value.byteLength).toBeLessThanOrEqual(2048);
    expect(error.findDetails(BadRequest)[0]?.fieldViolations.length).toBeGreaterThan(1);
  });

  test('the message of a stream that breaks a rule ends the stream', async () => {
    const client = createClient(SignupDefinition, channelTo({}));
    const error = await failed(client.registerAll([good, { ...good, age: 7 }, good]));
    expect(error).toMatchObject({ code: Status.INVALID_ARGUMENT, message: expect.stringContaining('age: ') });
    expect(calls).toHaveLength(1);
    expect(await client.registerAll([good, good])).toEqual({ registered: 3 });
  });

  test('services without rules are not affected', async () => {
    const payload = new Uint8Array(100_000).fill(1);
    const { echo } = createClient(EchoDefinition, channelTo({ responses: true }));
    expect((await echo({ text: 'a', payload })).payload).toEqual(payload);
  });
});

describe('on a client', () => {
  const client = () =>
    createClient(SignupDefinition, channelTo(), { '*': { interceptors: [validation({ responses: true })] } });

  test('a request that breaks a rule is not sent', async () => {
    const error = await failed(client().register({ ...good, age: 7 }));
    expect(error).toMatchObject({ code: Status.INVALID_ARGUMENT, processed: 'no' });
    expect((await failed(client().registerAll([{ ...good, age: 7 }]))).code).toBe(Status.INVALID_ARGUMENT);
    expect(calls).toEqual([]);
    expect(await client().register(good)).toEqual({ registered: 1 });
  });

  test('a value that is not a message gives the usual error', async () => {
    const error = await failed(client().register({ ...good, name: 5 as never }));
    expect(error).toMatchObject({
      code: Status.INTERNAL,
      message: expect.stringContaining('expected a string'),
    });
  });
});

/** Generates and loads a file with rules. */
async function load(proto: string): Promise<{ SDefinition: ServiceDefinition }> {
  const directory = workspace({
    'a.proto': `syntax = "proto3";\npackage t;\nimport "buf/validate/validate.proto";\n${proto}`,
  });
  mkdirSync(join(directory, 'node_modules'));
  for (const name of ['rdma-rpc', '@bufbuild'])
    symlinkSync(
      name === 'rdma-rpc' ? root : join(root, 'node_modules', name),
      join(directory, 'node_modules', name),
    );
  await generate({
    files: [join(directory, 'a.proto')],
    out: join(directory, 'gen'),
    codecModule: join(root, 'runtime/codec/generated/v1.ts'),
  });
  return (await import(join(directory, 'gen/a.rdma.ts'))) as { SDefinition: ServiceDefinition };
}

test('on request responses are checked, and one that breaks a rule is INTERNAL', async () => {
  const { SDefinition } = await load(
    'message M { int32 x = 1 [(buf.validate.field).int32.gt = 0]; }\nservice S { rpc Get(M) returns (M); rpc Many(M) returns (stream M); }',
  );
  const channel = createInProcessChannel((server) =>
    server.use(validation({ requests: false, responses: true })).add(SDefinition, {
      get: ({ x }: { x: number }) => ({ x: x - 1 }),
      *many({ x }: { x: number }) {
        yield { x };
        yield { x: -1 };
      },
    } as never),
  );
  open.push(channel);
  const client = createClient(SDefinition, channel) as unknown as {
    get(m: object): Promise<unknown>;
    many(m: object): AsyncIterable<unknown>;
  };
  expect(await client.get({ x: 2 })).toEqual({ x: 1 });
  expect(await failed(client.get({ x: 0 }))).toMatchObject({
    code: Status.INTERNAL,
    message: expect.stringContaining('the response breaks a rule: x'),
  });
  const seen: unknown[] = [];
  const read = async () => {
    for await (const each of client.many({ x: 1 })) seen.push(each);
  };
  expect((await failed(read())).code).toBe(Status.INTERNAL);
  expect(seen).toEqual([{ x: 1 }]);
});

test('an invalid rule is INTERNAL, and the error names its message', async () => {
  const { SDefinition } = await load(
    'message M { int32 x = 1 [(buf.validate.field).cel = { id: "x" expression: "this. is no CEL" }]; }\nservice S { rpc Get(M) returns (M); }',
  );
  const channel = createInProcessChannel((server) =>
    server.use(validation()).add(SDefinition, { get: () => ({}) } as never),
  );
  open.push(channel);
  const { get } = createClient(SDefinition, channel) as unknown as { get(m: object): Promise<unknown> };
  const error = await failed(get({ x: 1 }));
  expect(error).toMatchObject({
    code: Status.INTERNAL,
    message: expect.stringMatching(/a rule of t\.M is wrong/),
  });
});

test('unknown options are refused', () => {
  expect(() => validation({ failfast: true } as never)).toThrow(/did you mean failFast/);
});

test('when the rules cannot be found, the error explains how to get them', async () => {
  const directory = workspace({ 'a.proto': 'syntax = "proto3"; import "buf/validate/validate.proto";' });
  const before = process.cwd();
  process.chdir(directory);
  try {
    await expect(generate({ files: ['a.proto'] })).rejects.toThrow(GenerateError);
    await expect(generate({ files: ['a.proto'] })).rejects.toThrow(
      /was not found in .*name its include directory with -I, or install @bufbuild\/protovalidate, which has it/,
    );
  } finally {
    process.chdir(before);
  }
});

describe('examples/validate', () => {
  test('prints what its README promises', () => {
    const out = execFileSync(process.execPath, [join(root, 'dist/examples/validate/main.js')], {
      encoding: 'utf8',
    });
    const lines = out.trim().split('\n');
    expect(lines[0]).toBe('registered: 1');
    expect(lines[1]).toBe('INVALID_ARGUMENT');
    expect(lines.slice(2, 5).map((line) => line.trim().split(':')[0])).toEqual(['email', 'age', 'login']);
    expect(lines.at(-1)).toBe('INVALID_ARGUMENT, processed: no');
  });

  test('its server answers as described', async () => {
    const { server, address } = await startServer('127.0.0.1:0');
    expect(address).toMatch(/^127\.0\.0\.1:/);
    await server.shutdown();
  });
});
