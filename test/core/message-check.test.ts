/**
 * Tests messages with unknown properties. Each is reported once, at the first opportunity, with a suggestion
 * of the name that was meant.
 */
import { createClient, createInProcessChannel } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { responseCheck } from '../../runtime/core/message-check.ts';
import { checkedMessages } from '../../runtime/limits.ts';
import { msgpackType } from '../../runtime/msgpack/msgpack-type.ts';
import { AllTypes } from '../codec/gen/conformance.rdma.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';

const name = 'corpus.conformance.AllTypes';

/** Returns the text for a response. */
function saidOf(response: unknown): string[] {
  const said: string[] = [];
  responseCheck('a/B', AllTypes, (text) => said.push(text)).look(response);
  return said.map((text) => text.replace("a/B: in the handler's response ", ''));
}

describe('errors', () => {
  test.each<[string, unknown, string]>([
    [
      'a slip',
      { optionalInt23: 1 },
      `\`optionalInt23\` is no field of ${name}, and is not sent; did you mean \`optionalInt32\`?`,
    ],
    [
      'the name of the .proto',
      { optional_string: 'a' },
      `\`optional_string\` is no field of ${name}, and is not sent; did you mean \`optionalString\`?`,
    ],
    [
      'a case beside its oneof',
      { oneofString: 'a' },
      `\`oneofString\` is no field of ${name}, and is not sent; it is a case of the oneof \`oneofField\`: give { oneofField: { case: 'oneofString', value: … } }`,
    ],
    [
      'in a message of a message',
      { optionalNestedMessage: { colour: 1 } },
      `\`colour\` is no field of ${name}.Nested, and is not sent; its fields are a, corecursive`,
    ],
    ['in a list', { repeatedNestedMessage: [{ a: 1 }, { b: 1 }] }, `\`b\` is no field of ${name}.Nested`],
    ['in a map', { mapStringNestedMessage: { x: { b: 1 } } }, `\`b\` is no field of ${name}.Nested`],
    [
      'in a oneof',
      { oneofField: { case: 'oneofNestedMessage', value: { b: 1 } } },
      `\`b\` is no field of ${name}.Nested`,
    ],
    [
      'a Date',
      { optionalTimestamp: new Date(0) },
      'a Date was given instead of a google.protobuf.Timestamp: it is not sent',
    ],
    ['a Map', { mapStringString: new Map([['a', 'b']]) }, '`mapStringString` is a Map: give an object'],
    [
      'a message without fields',
      { optionalEmpty: { ok: true } },
      '`ok` is no field of google.protobuf.Empty, and is not sent; the message has no fields',
    ],
  ])('%s', (_, response, text) => {
    const said = saidOf(response);
    expect(said).toHaveLength(1);
    expect(said[0]).toContain(text);
  });
});

test.each<[string, unknown]>([
  ['a message', AllTypes.create({ optionalInt32: 1, mapStringString: { a: 'b' } })],
  ['what has no value', { typo: undefined }],
  [
    'methods of an object',
    {
      save() {
        return true;
      },
    },
  ],
  ['what other libraries and unknown fields bring', { $typeName: 'x', $unknownFields: new Uint8Array(1) }],
  ['nothing at all, which its encoder refuses', null],
  ['a circle, which its encoder refuses', circle()],
])('nothing is said of %s', (_, response) => {
  expect(saidOf(response)).toEqual([]);
});

function circle(): object {
  const message: { recursiveMessage?: object } = {};
  message.recursiveMessage = message;
  return message;
}

test('a property that throws when it is read, and a type without a schema, end the check', () => {
  const thrower = {
    get typo(): never {
      throw new Error('mine');
    },
  };
  for (const [type, value] of [
    [AllTypes, thrower],
    [msgpackType('free'), { anything: 1 }],
  ] as const) {
    const check = responseCheck('a/B', type as never, () => expect.unreachable());
    check.look(value);
    expect(check.left).toBe(0);
  }
});

describe('of a server', () => {
  let lines: string[];
  beforeEach(() => {
    lines = [];
  });
  const log = (line: string): void => {
    if (line.includes('response')) lines.push(line);
  };

  test('the caller gets the valid fields, and one warning', async () => {
    const channel = createInProcessChannel(
      (server) => server.add(EchoDefinition, { echo: () => ({ text: 'right', nubmer: 3 }) as object }),
      { log },
    );
    const client = createClient(EchoDefinition, channel);
    for (let i = 0; i < 3; ++i) expect(await client.echo({})).toMatchObject({ text: 'right', number: 0 });
    await channel.close();
    expect(lines).toEqual([
      "test.echo.Echo/Echo: in the handler's response `nubmer` is no field of test.echo.EchoMessage, and is not sent; did you mean `number`?",
    ]);
  });

  test('only the first responses of a method are looked at', async () => {
    let calls = 0;
    const echo = () => (++calls > checkedMessages ? { nubmer: 3 } : {}) as object;
    const channel = createInProcessChannel((server) => server.add(EchoDefinition, { echo }), { log });
    const client = createClient(EchoDefinition, channel);
    for (let i = 0; i < checkedMessages + 5; ++i) await client.echo({});
    await channel.close();
    expect(calls).toBe(checkedMessages + 5);
    expect(lines).toEqual([]);
  });

  test('streams are checked, too, whether they have one response or many', async () => {
    const channel = createInProcessChannel(
      (server) =>
        server.add(StreamsDefinition, {
          async *echo() {
            yield {};
            yield { nubmer: 1 } as object;
          },
          sum: () => ({ tetx: 'a' }) as object,
        }),
      { log },
    );
    const client = createClient(StreamsDefinition, channel);
    for await (const _ of client.echo([]));
    await client.sum([]);
    await channel.close();
    expect(lines.map((line) => /`(\w+)`\?/.exec(line)?.[1])).toEqual(['number', 'text']);
  });

  describe('without a log', () => {
    afterEach(() => vi.restoreAllMocks());

    test('the warning is a process warning', async () => {
      const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
      const channel = createInProcessChannel((server) =>
        server.add(EchoDefinition, { echo: () => ({ txt: 'a' }) as object }),
      );
      await createClient(EchoDefinition, channel).echo({});
      await channel.close();
      expect(warned).toHaveBeenCalledExactlyOnceWith(expect.stringContaining('did you mean `text`?'), {
        type: 'RdmaRpcWarning',
      });
    });
  });
});

describe('of a client', () => {
  let lines: string[];
  beforeEach(() => {
    lines = [];
  });
  const log = (line: string): void => {
    if (line.includes('in the request')) lines.push(line);
  };
  const server = {
    echo: () => ({}),
    sum: async (requests: AsyncIterable<unknown>) => {
      for await (const _ of requests);
      return {};
    },
  };

  test('the server gets the valid fields, and one warning', async () => {
    const found: unknown[] = [];
    const echo = (request: unknown) => {
      found.push(request);
      return {};
    };
    const channel = createInProcessChannel((into) => into.add(EchoDefinition, { echo }), { log });
    const client = createClient(EchoDefinition, channel);
    for (let i = 0; i < 3; ++i) await client.echo({ text: 'right', nubmer: 3 } as object);
    await channel.close();
    expect(found).toHaveLength(3);
    expect(found[0]).toMatchObject({ text: 'right', number: 0 });
    expect(lines).toEqual([
      'test.echo.Echo/Echo: in the request `nubmer` is no field of test.echo.EchoMessage, and is not sent; did you mean `number`?',
    ]);
  });

  test('only the first requests of a method are looked at', async () => {
    const channel = createInProcessChannel((into) => into.add(EchoDefinition, { echo: server.echo }), {
      log,
    });
    const client = createClient(EchoDefinition, channel);
    for (let i = 0; i < checkedMessages; ++i) await client.echo({});
    await client.echo({ nubmer: 3 } as object);
    await channel.close();
    expect(lines).toEqual([]);
  });

  test('streams are checked, too, whether they have one request or many', async () => {
    const channel = createInProcessChannel(
      (into) =>
        into.add(StreamsDefinition, {
          async *count() {},
          sum: server.sum,
        }),
      { log },
    );
    const client = createClient(StreamsDefinition, channel);
    for await (const _ of client.count({ amuont: 1 } as object));
    await client.sum([{ text: 'a' }, { nubmer: 1 } as object]);
    await channel.close();
    expect(lines.map((line) => /`(\w+)` is no/.exec(line)?.[1])).toEqual(['amuont', 'nubmer']);
  });
});
