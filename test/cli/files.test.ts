/**
 * Tests `list`, `describe` and `call` with files instead of reflection, streams from stdin, output for
 * programs, and peers of other implementations.
 */
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer as createNetServer, type Server as NetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { createServer, RpcError, type Server, Status } from 'rdma-rpc';
import { addReflection } from 'rdma-rpc/reflection';
import { afterAll, afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { create, FileDescriptorSetSchema, toBinary } from '#protobuf';
import { fileRegistry } from '../../cli/server/schema/file-schema.ts';
import { root } from '../house/tree.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { main, run, runWith } from './command.ts';
import { expectSchema } from './schemas.ts';

const directory = mkdtempSync(join(tmpdir(), 'rdma-rpc-files-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const echoProto = join(root, 'test/runtime/protos/echo.proto');
const streamProto = join(root, 'test/stream/protos/stream.proto');
const echoSet = join(directory, 'echo.binpb');
const { files } = fileRegistry({ proto: [echoProto], include: [], protoset: [] });
const file = [...files].map(({ proto }) => proto);
// Any order of the files is accepted, even a file before the files that it imports.
const set = create(FileDescriptorSetSchema, { file: file.reverse() });
writeFileSync(echoSet, toBinary(FileDescriptorSetSchema, set));

let server: Server;
let address: string;
beforeEach(async () => {
  server = createServer().add(EchoDefinition, {
    echo: (request) => {
      if (request.text === 'fail') throw new RpcError(Status.NOT_FOUND, 'nobody', { trailer: { left: '2' } });
      return request;
    },
    behave: () => ({}),
  });
  address = await server.listen('127.0.0.1:0');
});
afterEach(() => server.shutdown({ graceMs: 0 }));

describe.each([
  ['--proto', echoProto],
  ['--protoset', echoSet],
])('with %s', (...flags) => {
  test('call works with a server without reflection', async () => {
    const outcome = await run('call', address, 'test.echo.Echo/Echo', '{"text":"hi"}', ...flags);
    expect(outcome).toEqual({ code: 0, out: '{\n  "text": "hi"\n}\n', errors: '' });
  });

  test('list and describe need no server, but accept its address', async () => {
    expect((await run('list', ...flags)).out).toBe('test.echo.Echo\n');
    expect((await run('list', address, 'test.echo.Echo', ...flags)).out).toMatch(/^test\.echo\.Echo\/Echo\n/);
    expect((await run('describe', 'test.echo.Echo/Echo', ...flags)).out).toContain(
      'rpc Echo(test.echo.EchoMessage) returns (test.echo.EchoMessage)',
    );
    expect((await run('describe', ...flags)).out).toMatch(/^\/\/ echo\.proto\n[\s\S]*service Echo \{\n/);
  });

  test('the error for an unknown name suggests the right one', async () => {
    const { code, errors } = await run('call', address, 'test.echo.Echo/Ehco', ...flags);
    expect([code, errors]).toEqual([1, 'error: test.echo.Echo has no method Ehco; did you mean Echo?\n']);
    expect((await run('describe', 'test.echo.Ecko', ...flags)).errors).toMatch(
      /^error: the .* declares? no test\.echo\.Ecko; did you mean test\.echo\.Echo\?\n$/,
    );
  });
});

test('the declarations contain the comments of the .proto', async () => {
  const path = join(directory, 'a.proto');
  writeFileSync(
    path,
    'syntax = "proto3";\n// What it is for.\nmessage A {\n  // A text.\n  string t = 1;\n}\n',
  );
  expect((await run('describe', 'A', '--proto', path)).out).toBe(
    '// a.proto\nsyntax = "proto3";\n\n// What it is for.\nmessage A {\n  // A text.\n  string t = 1;\n}\n',
  );
});

test('describe --with-types prints a .proto that declares the same', async () => {
  const proto = join(directory, 'shop.proto');
  writeFileSync(
    join(directory, 'money.proto'),
    'syntax = "proto3";\npackage money;\nmessage Price { int64 cents = 1; }\n',
  );
  writeFileSync(join(directory, 'unused.proto'), 'syntax = "proto3";\npackage unused;\nmessage No {}\n');
  writeFileSync(
    proto,
    `syntax = "proto3";
package shop.v1;
import "money.proto";
import "unused.proto";
message Unused { unused.No no = 1; }
message Order { map<string, Line> lines = 1; Kind kind = 2; message Line { money.Price price = 1; } }
enum Kind { KIND_UNSPECIFIED = 0; }
service Shop { rpc Buy(Order) returns (Receipt); rpc Again(Order) returns (stream Receipt); }
message Receipt { Order.Line line = 1; }
`,
  );
  const flags = ['-I', directory];
  const { out } = await run('describe', 'shop.v1.Shop', '--with-types', '--proto', proto, ...flags);
  const pasted = join(directory, 'pasted.proto');
  writeFileSync(pasted, out);
  expect(out).toMatch(
    /^\/\/ shop\.proto\nsyntax = "proto3";\n\npackage shop\.v1;\n\nimport "money\.proto";\n\nservice Shop/,
  );
  expect(out.match(/^(message|enum|service) \w+/gm)).toEqual([
    'service Shop',
    'message Order',
    'enum Kind',
    'message Receipt',
  ]);
  const again = await run('describe', 'shop.v1.Shop', '--with-types', '--proto', pasted, ...flags);
  expect(again.out.replace('// pasted.proto', '// shop.proto')).toBe(out);
});

test.each<[string, string[], RegExp]>([
  ['a missing .proto', ['--proto', 'no/such.proto'], /^error: .*no\/such\.proto: no such file\n$/],
  [
    'a missing descriptor set',
    ['--protoset', 'no/such.binpb'],
    /^error: no\/such\.binpb cannot be read: ENOENT\n$/,
  ],
  [
    'an endless .proto',
    ['--proto', '/dev/zero'],
    /^error: \/dev\/zero: cannot be read: ENODEV: it is a device\n$/,
  ],
  ['an endless descriptor set', ['--protoset', '/dev/zero'], /^error: \/dev\/zero cannot be read: ENODEV\n$/],
  [
    'a file that is not a descriptor set',
    ['--protoset', echoProto],
    /is not a descriptor set: protoc --include_imports/,
  ],
])('%s is an error', async (_, flags, errors) => {
  expect(await run('list', ...flags)).toMatchObject({
    code: 1,
    out: '',
    errors: expect.stringMatching(errors),
  });
});

test('an error in a .proto is reported with its position', async () => {
  const path = join(directory, 'broken.proto');
  writeFileSync(path, 'syntax = "proto3";\nmessage A { Bee b = 1; }\n');
  expect((await run('list', '--proto', path)).errors).toMatch(/^error: .*broken\.proto:2:13: (?!error).*Bee/);
});

test('types of options are never suggested for a name', async () => {
  const path = join(directory, 'shop.proto');
  const level = 'option idempotency_level = IDEMPOTENT;';
  writeFileSync(
    path,
    `syntax = "proto3";\nservice Shop { rpc Get(Item) returns (Item) { ${level} } }\nmessage Item {}\n`,
  );
  expect(await run('describe', '--proto', path, 'Nope')).toMatchObject({
    code: 1,
    errors: 'error: the .proto files declare no Nope; available: Item, Shop, Shop.Get\n',
  });
});

test('protoc accepts the same files', async () => {
  if (spawnSync('protoc', ['--version']).status !== 0) return;
  const path = join(directory, 'protoc.binpb');
  const args = [
    `-I${join(root, 'test/runtime/protos')}`,
    '--include_imports',
    `--descriptor_set_out=${path}`,
  ];
  expect(spawnSync('protoc', [...args, 'echo.proto']).status).toBe(0);
  expect((await run('list', '--protoset', path)).out).toBe('test.echo.Echo\n');
});

test('a command without files and without an address is an error', async () => {
  expect(await run('list')).toMatchObject({
    code: 2,
    errors: 'error: give the address of a server, or --proto or --protoset\n',
  });
});

describe('requests', () => {
  const echo = (...args: string[]) =>
    run('call', address, 'test.echo.Echo/Echo', ...args, '--proto', echoProto);

  test('with unknown members are refused, or accepted on request', async () => {
    expect((await echo('{"txt":1}')).errors).toMatch(/unknown field "txt"; did you mean text\?/);
    expect(await echo('{"txt":1,"text":"a"}', '--allow-unknown-fields')).toMatchObject({
      code: 0,
      out: '{\n  "text": "a"\n}\n',
    });
  });

  test('show fields with their default on request', async () => {
    expect(JSON.parse((await echo('{}', '--emit-defaults')).out)).toMatchObject({ text: '', payload: '' });
  });

  test('of a stream are read from stdin as they arrive, in any layout', async () => {
    server.add(StreamsDefinition, {
      async *echo(requests) {
        for await (const each of requests) yield each;
      },
    });
    const child = spawn(
      process.execPath,
      [main, 'call', address, 'test.stream.Streams/Echo', '-', '--proto', streamProto],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    );
    onTestFinished(() => void child.kill());
    child.stdin.write('{"number":1}\n');
    // The answer arrives before the requests end.
    const [first] = await new Promise<[Buffer]>((resolve) =>
      child.stdout.once('data', (data) => resolve([data])),
    );
    expect(first.toString()).toBe('{"number":1}\n');
    child.stdin.end('{\n  "number": 2\n}{"number":3}');
    const rest = readAll(child.stdout);
    const code = await new Promise((resolve) => child.once('exit', resolve));
    expect([code, await rest]).toEqual([0, '{"number":2}\n{"number":3}\n']);
    const wrong = [address, 'test.stream.Streams/Echo', '{"number":1}\n{"number"', '--proto', streamProto];
    expect(await run('call', ...wrong)).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/^error: line 2 of the request is not JSON: .*\n$/),
    });
  });

  test('can be given by -d, as in grpcurl, where @ means stdin', async () => {
    const method = ['call', address, 'test.echo.Echo/Echo', '--proto', echoProto];
    expect((await run(...method, '-d', '{"text":"a"}')).out).toBe('{\n  "text": "a"\n}\n');
    expect(await runWith('{"text":"b"}', ...method, '-d', '@')).toMatchObject({
      code: 0,
      out: '{\n  "text": "b"\n}\n',
    });
    expect(await run(...method, '{}', '-d', '{}')).toEqual({
      code: 2,
      out: '',
      errors: 'error: the request is given twice: as an argument and with --data\n',
    });
    expect(await run(...method, '-d', '@request.json')).toEqual({
      code: 2,
      out: '',
      errors: 'error: --data takes no file (@request.json): @ alone is stdin, such as -d @ <request.json\n',
    });
    expect(await runWith('', ...method, '-d', '@')).toMatchObject({
      code: 1,
      errors: 'error: test.echo.Echo/Echo takes one request, and got none\n',
    });
  });

  test.each(['health', 'call', 'list --nonsense'])(
    'a wrong command line is an error for programs, too: %s',
    async (words) => {
      const [command = '', ...flags] = words.split(' ');
      const { code, out, errors } = await run(command, ...flags, '--json');
      expect(code).toBe(2);
      const { error } = JSON.parse(out) as { error: { message: string } };
      expect(errors).toContain(`error: ${error.message}\n`);
      expectSchema(command, { error });
    },
  );

  // Node reads such a stdin as if it were empty.
  test.each(['call -', 'call -d @', 'bench -d @', 'bench -D -'])(
    'a directory as stdin is an error, not an empty stream: %s',
    async (words) => {
      const folder = openSync('/', 'r');
      onTestFinished(() => closeSync(folder));
      const [command = '', ...request] = words.split(' ');
      const method = [command, address, 'test.stream.Streams/Echo', '--proto', streamProto];
      expect(await runWith(folder, ...method, ...request)).toMatchObject({
        code: 1,
        out: '',
        errors: 'error: stdin is a directory\n',
      });
    },
  );
});

describe('--json', () => {
  test('list, describe and health print JSON', async () => {
    addReflection(server);
    const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).out) as object;
    const list = expectSchema('list', await json('list', address, 'test.echo.Echo'));
    expect(list).toMatchObject({ services: [{ name: 'test.echo.Echo' }] });
    const shown = expectSchema('describe', await json('describe', address, 'test.echo.Echo/Echo'));
    expect(shown).toMatchObject({ declarations: [{ name: 'test.echo.Echo/Echo', kind: 'method' }] });
    expectSchema('list', await json('list', address, 'no.Such'));
    expect(expectSchema('health', await json('health', address))).toMatchObject({
      error: { code: 'UNIMPLEMENTED' },
    });
  });

  test.each([
    ['an answer', '{"text":"hi"}', 0, [{ message: { text: 'hi' } }, { status: { code: 'OK', trailer: {} } }]],
    [
      'an error',
      '{"text":"fail"}',
      1,
      [{ status: { code: 'NOT_FOUND', message: 'nobody', details: [], trailer: { left: ['2'] } } }],
    ],
    [
      'a wrong request',
      '{"txt":1}',
      1,
      [{ error: { message: expect.stringMatching(/unknown field "txt"/) } }],
    ],
  ])('call prints %s', async (_, request, code, lines) => {
    const outcome = await run(
      'call',
      address,
      'test.echo.Echo/Echo',
      request,
      '--json',
      '--proto',
      echoProto,
    );
    const shown = outcome.out.trimEnd().split('\n');
    expect(outcome.code).toBe(code);
    expect(shown.map((line) => expectSchema('call', JSON.parse(line) as object))).toEqual(lines);
  });
});

describe('for another kind of peer the error is one sentence with a code, without a stack', () => {
  const listening = async (peer: NetServer): Promise<string> => {
    await new Promise<void>((resolve) => peer.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void peer.close());
    return `127.0.0.1:${(peer.address() as AddressInfo).port}`;
  };
  const commands = [['health'], ['list'], ['describe'], ['call', 'test.echo.Echo/Echo']];
  test.each<[string, () => Promise<string>]>([
    ['no listener', async () => '127.0.0.1:1'],
    ['no such socket', async () => `unix:${join(directory, 'none.sock')}`],
    ['a web server', () => listening(createHttpServer((_, response) => response.end('hello')))],
    ['a listener that hangs up', () => listening(createNetServer((socket) => socket.destroy()))],
  ])('%s', async (_, start) => {
    const peer = await start();
    for (const [command, ...args] of commands) {
      const { code, out, errors } = await run(command!, peer, ...args, '--timeout', '2000');
      expect([command, code, out]).toEqual([command, 1, '']);
      expect(errors).toMatch(/^error: [A-Z_]+: .+\n$/);
      expect(errors).not.toMatch(/\n\s+at /);
    }
  });
});

test('the schemas in the documents are the tested ones', () => {
  for (const name of ['bench', 'call', 'list', 'describe', 'health', 'ping', 'devices', 'links', 'events'])
    expect(existsSync(join(root, 'docs/schemas', `${name}.schema.json`)), name).toBe(true);
});
