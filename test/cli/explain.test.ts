/** Tests `rdma-rpc explain`: its output for calls of each tier on the fabrics that every machine has. */
import { join } from 'node:path';
import { createServer } from 'rdma-rpc';
import { addReflection } from 'rdma-rpc/reflection';
import { describe, expect, test } from 'vitest';
import { root } from '../house/tree.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { run } from './command.ts';
import { expectSchema } from './schemas.ts';

interface Message {
  readonly tier: string;
  readonly why: string;
  readonly steps: readonly { readonly side: string; readonly operation: string; readonly bytes?: number }[];
}
interface Explained {
  readonly exposure: string;
  readonly security: string;
  readonly calls: readonly { readonly request: Message; readonly response: Message }[];
}

const method = 'test.echo.Echo/Echo';
const proto = join(root, 'test/runtime/protos/echo.proto');

async function explain(...args: string[]): Promise<Explained> {
  const { code, out } = await run('explain', method, ...args, '--json');
  expect(code, out).toBe(0);
  return expectSchema('explain', JSON.parse(out) as Explained);
}
const names = ({ steps }: Message) => steps.map(({ side, operation }) => `${side} ${operation}`);

describe.each(['shm', 'tcp'])('over %s', (fabric) => {
  test('a small call is inline, a larger one in a slot or several, a large one READ', async () => {
    const [small] = (await explain('--size', '10', '--fabric', fabric)).calls;
    expect([small!.request.tier, names(small!.request)]).toEqual(['inline', ['client SEND, inline']]);
    const [eager] = (await explain('--size', '4000', '--fabric', fabric)).calls;
    expect([eager!.request.tier, names(eager!.request)]).toEqual([
      'eager',
      ['client SEND from a registered slot'],
    ]);
    const [segmented] = (await explain('--size', '30000', '--response-size', '18000', '--fabric', fabric))
      .calls;
    expect([segmented!.request.tier, segmented!.response.tier]).toEqual(['segmented', 'segmented']);
    const count = fabric === 'tcp' ? 4 : 2;
    expect(segmented!.request.steps).toMatchObject([{ operation: 'SEND from a registered slot', count }]);
    const [bulk] = (await explain('--size', '70000', '--fabric', fabric)).calls;
    expect(bulk!.request.tier).toBe('bulk');
    expect(names(bulk!.request)).toContain('server RDMA READ');
  });

  test('memory for a large response is requested once, and then granted in advance', async () => {
    const { calls } = await explain('--size', '1', '--response-size', '70000', '--fabric', fabric);
    const [first, later] = calls.map(({ response }) => response);
    expect(first!.why).toMatch(/the server asked for the memory first/);
    expect(later!.why).toMatch(/the memory for it came with the request/);
    expect(names(later!)).toEqual(['server SEND, inline', 'server RDMA WRITE']);
  });
});

interface Tiers {
  readonly tiers: Record<
    'request' | 'response',
    { readonly tier: string; readonly bytesMax: number | null }[]
  >;
}

test.each(['shm', 'tcp'])('without a size it prints where each tier ends, over %s', async (fabric) => {
  const { code, out } = await run('explain', method, '--fabric', fabric, '--json');
  expect(code, out).toBe(0);
  const { tiers } = expectSchema('explain', JSON.parse(out) as Tiers);
  expect(tiers.response.map(({ tier }) => tier)).toEqual(['inline', 'eager', 'segmented', 'bulk']);
  expect(tiers.request).toEqual(tiers.response);
  const ends = tiers.request.map(({ bytesMax }) => bytesMax);
  expect(ends.at(-1)).toBeNull();
  // The last size of a tier and the first size of the next one.
  for (const [i, end] of ends.slice(0, -1).entries()) {
    const [at] = (await explain('--size', String(end), '--fabric', fabric)).calls;
    const [above] = (await explain('--size', String(end! + 1), '--fabric', fabric)).calls;
    expect([at!.request.tier, above!.request.tier]).toEqual(
      tiers.request.slice(i, i + 2).map(({ tier }) => tier),
    );
  }
});

test('it names the memory that is READ: that of long requests on shm, always a copy over tcp', async () => {
  const why = async (size: string, ...args: string[]) =>
    (await explain('--size', size, ...args)).calls[0]!.request.why;
  expect(await why('5000000', '--proto', proto)).toMatch(
    /out of the memory of the application, without a copy/,
  );
  expect(await why('70000', '--proto', proto)).toMatch(/on this fabric a copy costs less than to have/);
  expect(await why('70000', '--fabric', 'tcp')).toMatch(/that of the application is copied/);
});

test.each(['shm', 'tcp'])('the trial call obeys --require, over %s', async (fabric) => {
  const sizes = ['--size', '70000', '--response-size', '70000', '--fabric', fabric, '--proto', proto];
  const { calls, security } = await explain(...sizes, '--require', 'sealed');
  expect(security).toBe('sealed');
  expect(calls[0]!.request.why).toMatch(/out of the arena, .+: it is sealed there/);
  expect((await explain(...sizes, '--require', 'bound')).security).toBe('bound');
  expect((await explain(...sizes)).security).toBe('none');
  const { out } = await run('explain', method, '--size', '1', '--require', 'sealed');
  expect(out).toMatch(/^test\.echo\.Echo\/Echo over shm, .+ memory shown by window, sealed\n/);
});

test('without a method it explains one with a bytes field', async () => {
  const { code, out } = await run('explain', '--size', '5000000', '--json');
  expect(code).toBe(0);
  const { calls, ...rest } = expectSchema('explain', JSON.parse(out) as Explained);
  expect(rest).toMatchObject({ method: 'any method', fabric: 'shm' });
  expect(calls[0]!.request.why).toMatch(/without a copy/);
});

test("a server's declarations are tried beside the connection to it, whose counters are not part of the trial", async () => {
  const server = createServer().add(EchoDefinition, {});
  addReflection(server);
  try {
    const address = await server.listen('127.0.0.1:0');
    const sizes = ['--size', '50000', '--response-size', '300000'];
    const { code, out } = await run('explain', address, method, ...sizes, '--json');
    expect(code, out).toBe(0);
    const { calls } = JSON.parse(out) as Explained;
    for (const { request, response } of calls)
      expect([request.tier, response.tier]).toEqual(['bulk', 'bulk']);
  } finally {
    await server.shutdown({ graceMs: 0 });
  }
});

test('without a method it takes the first one with a bytes field, of the server or of the files', async () => {
  const server = createServer().add(EchoDefinition, {});
  addReflection(server);
  const address = await server.listen('127.0.0.1:0');
  for (const from of [[address], ['--proto', proto], [address, '--proto', proto]]) {
    const { code, out, errors } = await run('explain', ...from, '--size', '70000', '--json');
    expect(code, errors).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ method });
  }
  await server.shutdown({ graceMs: 0 });
});

test('it prints one line for each message', async () => {
  const { code, out } = await run('explain', method, '--size', '10', '--fabric', 'tcp', '--proto', proto);
  expect(code).toBe(0);
  expect(`\n${out}`).toMatchInlineSnapshot(`
    "
    test.echo.Echo/Echo over tcp, tcp to tcp, memory shown by window

      request of 10 bytes: inline
        its frame fits the 128 bytes that the device takes along with a SEND
        client: SEND, inline
      response of 0 bytes: inline
        its frame fits the 128 bytes that the device takes along with a SEND
        server: SEND, inline
    "
  `);
});

test.each<[string, string[], number, RegExp]>([
  [
    'no size and a fabric without a device',
    [method, '--fabric', 'verbs', '--client-device', 'nosuch0'],
    1,
    /^error: .*/,
  ],
  ['an invalid size', [method, '--size', 'big'], 2, /Give bytes from 0/],
  [
    'a service instead of a method',
    ['test.echo.Echo', '--size', '1'],
    2,
    /^error: give a method: Service\/Method\n$/,
  ],
  ['two addresses', ['a:1', 'b:1', '--size', '1'], 2, /^error: give a method: Service\/Method\n$/],
  ['an address without a listener', ['127.0.0.1:1', '--size', '1'], 1, /ECONNREFUSED/],
  [
    'no method with a field for bytes',
    ['--size', '1', '--proto', join(root, 'proto/grpc/health/v1/health.proto')],
    1,
    /^error: .+: no method has a field for bytes; give one: Service\/Method\n$/,
  ],
  ['a misspelt method', ['test.echo.Echo/Ehco', '--size', '1', '--proto', proto], 1, /did you mean Echo\?/],
  [
    'a stream',
    ['tensor.v1.Vision/Brightness', '--size', '1', '--proto', join(root, 'examples/tensor/tensor.proto')],
    1,
    /^error: .+\/Brightness is a stream, whose messages travel in parts; explain makes unary calls\n$/,
  ],
  [
    'an unknown device',
    [method, '--size', '1', '--fabric', 'verbs', '--client-device', 'none0'],
    1,
    /^error: .+\n$/,
  ],
])('%s is an error', async (_, args, code, errors) => {
  const outcome = await run('explain', ...args);
  expect(outcome).toMatchObject({ code, out: '', errors: expect.stringMatching(errors) });
  expect(outcome.errors).not.toMatch(/\n\s+at /);
});
