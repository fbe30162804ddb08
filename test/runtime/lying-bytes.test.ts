/**
 * Tests byte arrays of an application with false properties: subclasses of Uint8Array, and arrays with own
 * properties. Every way of sending these arrays must send the bytes that the engine knows, and never bytes of
 * an earlier message.
 */
import {
  type Channel,
  createChannel,
  createClient,
  createServer,
  Metadata,
  RpcError,
  type Server,
  Status,
} from 'rdma-rpc';
import { defineService, method } from 'rdma-rpc/msgpack';
import { bytesOf } from 'rdma-rpc/tensor';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Any } from '../../runtime/codec/google/protobuf/any.rdma.ts';
import { Writer } from '../../runtime/codec/memory/writer.ts';
import { boundUnknown, writeUnknown } from '../../runtime/codec/unknown.ts';
import { caught } from '../outcomes.ts';
import { All } from '../tensor/gen/arrays.rdma.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';

const Packed = defineService({ name: 'test.Lying', methods: { echo: method<unknown, unknown>() } });
const old = 0xee;

let server: Server;
let channel: Channel;
beforeAll(async () => {
  server = createServer({ log: () => undefined })
    .add(EchoDefinition, {
      echo: (request) => request,
      behave: (_, context) => {
        context.header.set('seen-bin', context.metadata.get('given-bin') as Uint8Array);
        return {};
      },
    })
    .add(Packed, { echo: (value) => value });
  channel = createChannel(await server.listen('127.0.0.1:0'), { fabric: 'shm' });
  await channel.ready();
});
afterAll(async () => {
  await channel.close();
  await server.shutdown();
});

const elsewhere = new Uint8Array(1 << 20).fill(0x66);

/** Makes arrays of the given bytes whose properties report false values. */
const liars: Record<string, (bytes: Uint8Array<ArrayBuffer>) => Uint8Array> = {
  'a longer length': ({ buffer }) =>
    new (class extends Uint8Array {
      override get length() {
        return super.length + 40;
      }
    })(buffer),
  'a shorter length': ({ buffer }) =>
    new (class extends Uint8Array {
      override get length() {
        return 1;
      }
    })(buffer),
  'no length': ({ buffer }) =>
    new (class extends Uint8Array {
      override get length() {
        return 0;
      }
    })(buffer),
  'a longer byteLength': ({ buffer }) =>
    new (class extends Uint8Array {
      override get byteLength() {
        return super.byteLength + 40;
      }
    })(buffer),
  'a shorter byteLength': ({ buffer }) =>
    new (class extends Uint8Array {
      override get byteLength() {
        return 1;
      }
    })(buffer),
  'another buffer': ({ buffer }) =>
    new (class extends Uint8Array {
      override get buffer() {
        return elsewhere.buffer;
      }
    })(buffer),
  'another byteOffset': ({ buffer }) =>
    new (class extends Uint8Array {
      override get byteOffset() {
        return 8;
      }
    })(buffer),
  'methods that throw and give others': ({ buffer }) =>
    new (class extends Uint8Array {
      static get [Symbol.species]() {
        return Uint16Array as unknown as Uint8ArrayConstructor;
      }
      override set() {
        throw new Error('set');
      }
      override at(): never {
        throw new Error('at');
      }
      override subarray = () => elsewhere as never;
      override slice = () => elsewhere as never;
    })(buffer),
  'an own length': (bytes) => Object.defineProperty(bytes, 'length', { value: bytes.length + 40 }),
  'an own byteLength and buffer': (bytes) =>
    Object.defineProperties(bytes, {
      byteLength: { value: bytes.length + 40 },
      buffer: { value: elsewhere.buffer },
    }),
};

const content = (bytes: number): Uint8Array<ArrayBuffer> => {
  const made = new Uint8Array(bytes);
  for (let i = 0; i < bytes; ++i) made[i] = (i * 7) & 0x7f;
  return made;
};
/** Resolves to the received bytes, or to the error of the call. */
type Way = (value: Uint8Array) => Promise<Uint8Array> | Uint8Array;
const echo = () => createClient(EchoDefinition, channel);
const packed = () => createClient(Packed, channel);

const ways: Record<string, Way> = {
  'a field': async (payload) => (await echo().echo({ payload })).payload,
  'an element of a list': async (value) => (await echo().echo({ parts: [value] })).parts[0]!,
  'a field beside a large one': async (value) =>
    (await echo().echo({ payload: new Uint8Array(60_000), parts: [value] })).parts[0]!,
  metadata: async (value) => {
    const metadata = new Metadata();
    metadata.set('given-bin', value);
    let seen: unknown;
    await echo().behave(
      {},
      {
        metadata,
        onHeader: (header) => {
          seen = header.get('seen-bin');
        },
      },
    );
    return seen as Uint8Array;
  },
  'a value without a schema': async (value) => (await packed().echo(value)) as Uint8Array,
  'a value in an object without a schema': async (value) =>
    ((await packed().echo({ a: [1, { value }] })) as { a: [1, { value: Uint8Array }] }).a[1].value,
  'a message that is encoded': (value) => Any.decode(Any.encode({ typeUrl: 'a', value })).value,
  'a typed array': (value) => All.decode(All.encode({ uint8: value })).uint8 as Uint8Array,
  bytesOf: (value) => new Uint8Array(bytesOf(value)),
  'fields that were kept': ($unknownFields) => {
    const writer = new Writer();
    writer.reset(new Uint8Array(boundUnknown({ $unknownFields })).fill(old));
    return writer.bytes.subarray(0, writeUnknown(writer, 0, { $unknownFields }, writer.bytes.length));
  },
};

const sizes = [3, 30, 300, 5_000, 20_000, 100_000];
describe.each(Object.keys(ways))('%s', (way) => {
  test.each(Object.keys(liars))('sends the true bytes of an array with %s', async (liar) => {
    for (const bytes of sizes) {
      if (way === 'metadata' && bytes > 5_000) continue;
      // This fills a slot, a scratch buffer and a block with old bytes.
      await echo().echo({ payload: new Uint8Array(bytes + 100).fill(old) });
      await packed().echo(new Uint8Array(bytes + 100).fill(old));
      const expected = content(bytes);
      const came = await ways[way]!(liars[liar]!(content(bytes)));
      expect(Buffer.compare(expected, came), `${bytes} bytes`).toBe(0);
    }
  });
});

test.each(Object.keys(liars))('details of an error have the true bytes of an array with %s', async (liar) => {
  const value = liars[liar]!(content(30));
  const failing = createServer({ log: () => undefined }).add(EchoDefinition, {
    echo: () => {
      throw new RpcError(Status.ABORTED, 'no', { details: [{ type: 'x.Y', value }] });
    },
  });
  const to = createChannel(await failing.listen('127.0.0.1:0'), { fabric: 'shm' });
  const error = await caught(createClient(EchoDefinition, to).echo({}));
  expect(error.details.map(({ value: came }) => Buffer.compare(content(30), came))).toEqual([0]);
  await to.close();
  await failing.shutdown();
});
