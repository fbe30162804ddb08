/**
 * Tests typed arrays over `bytes`: the functions of rdma-rpc/tensor, and fields that are declared as such
 * arrays, in every form that a message can have.
 */
import { createClient, leaseOf } from 'rdma-rpc';
import { clone, equals, merge, Source } from 'rdma-rpc/codec';
import { fromJson, toJson } from 'rdma-rpc/json';
import * as tensor from 'rdma-rpc/tensor';
import { describe, expect, test } from 'vitest';
import { diagnosticsOf, outputOf, proto3 } from '../codegen/workspace.ts';
import { openPair, pairWays } from '../runtime/pair.ts';
import { All, type AllInit, ArraysDefinition } from './gen/arrays.rdma.ts';

const full: AllInit = {
  uint8: Uint8Array.of(1, 255),
  int8: Int8Array.of(1, -1),
  uint16: Uint16Array.of(1, 65535),
  int16: Int16Array.of(1, -1),
  uint32: Uint32Array.of(1, 2 ** 32 - 1),
  int32: Int32Array.of(1, -1),
  uint64: BigUint64Array.of(1n, 2n ** 64n - 1n),
  int64: BigInt64Array.of(1n, -1n),
  float32: Float32Array.of(1.5, Number.NaN, Number.NEGATIVE_INFINITY),
  float64: Float64Array.of(Math.PI),
  maybe: new Float32Array(0),
  list: [Int16Array.of(7), new Int16Array(0), Int16Array.of(-7, 8)],
  named: { a: Float64Array.of(0.1), b: new Float64Array(0) },
  numbered: { 5: Int32Array.of(5), 70: Int32Array.of(70, 71) },
  choice: { case: 'weights', value: Float32Array.of(9) },
  apart: new Float32Array(400).fill(3),
  plain: Uint8Array.of(9),
  inner: { float32: Float32Array.of(2), choice: { case: 'text', value: 'x' } },
};
const empty = new Uint8Array(0);

describe('a message with typed arrays', () => {
  test('is unchanged by protobuf, JSON, clone and merge', () => {
    const message = All.create(full);
    const bytes = All.encode(full);
    expect(All.decode(bytes)).toEqual(message);
    expect(fromJson(All, toJson(All, message))).toEqual(message);
    const copy = clone(All, message);
    expect(copy).toEqual(message);
    expect(copy.float32.buffer).not.toBe(message.float32.buffer);
    expect(merge(All, All.create(), message)).toEqual(message);
    expect(equals(All, copy, message)).toBe(true);
    copy.float64[0] = 1;
    expect(equals(All, copy, message)).toBe(false);
  });

  test('on the wire it is bytes, little-endian; in JSON base64', () => {
    const message = { float32: Float32Array.of(1) };
    expect([...All.encode(message)]).toEqual([0x4a, 4, 0, 0, 0x80, 0x3f]);
    expect(toJson(All, message)).toEqual({ float32: 'AACAPw==' });
  });

  test('defaults are empty arrays of the type, and are not sent', () => {
    const message = All.create();
    expect(message.float32).toEqual(new Float32Array(0));
    expect(message.int64).toEqual(new BigInt64Array(0));
    expect([message.maybe, message.list, All.encode(message).length]).toEqual([undefined, [], 0]);
    expect(All.decode(empty)).toEqual(message);
    expect(All.decode(All.encode({ maybe: new Float32Array(0) })).maybe).toEqual(new Float32Array(0));
  });

  test.each<[string, object, RegExp]>([
    ['a list', { float32: [1] }, /test.arrays.All.float32.*a Float32Array/],
    [
      'another array',
      { float32: new Float64Array(1) },
      /All.float32: expected a Float32Array, got one of Float64Array/,
    ],
    ['bytes', { int16: new Uint8Array(2) }, /test.arrays.All.int16.*an Int16Array/],
    ['in a list', { list: [new Uint8Array(2)] }, /test.arrays.All.list.*an Int16Array/],
    ['in a map', { named: { x: 'text' } }, /test.arrays.All.named.*a Float64Array/],
    ['in a oneof', { choice: { case: 'weights', value: new Uint8Array(4) } }, /a Float32Array/],
    ['a typed array where bytes are declared', { plain: new Float32Array(1) }, /bytesOf\(\)/],
  ])('%s is refused by name', (_what, init, why) => {
    expect(() => All.encode(init as AllInit)).toThrow(why);
    // A message that does not fit one slot is measured first, and measuring refuses nothing.
    expect(() => All.encode({ ...init, uint8: new Uint8Array(70_000) } as AllInit)).toThrow(why);
  });

  test('a length that is not a whole number of elements is refused, from the wire and from JSON', () => {
    expect(() => All.decode(Uint8Array.of(0x4a, 3, 1, 2, 3))).toThrow(
      /3 bytes are no whole number of elements of a Float32Array/,
    );
    expect(() => fromJson(All, { float32: 'AAA=' })).toThrow(/a whole number of elements of a Float32Array/);
  });

  test('from memory at any byte offset: a view where it is aligned, otherwise a copy', () => {
    const bytes = All.encode({ float32: Float32Array.of(1, 2, 3) });
    const views: boolean[] = [];
    for (let shift = 0; shift < 8; ++shift) {
      const memory = new Uint8Array(64);
      memory.set(bytes, shift);
      const source = new Source();
      source.leaseBytes = 1;
      source.reset(memory);
      const message = All.decodeFrom(source, shift, shift + bytes.length);
      expect(message.float32).toEqual(Float32Array.of(1, 2, 3));
      views.push(message.float32.buffer === memory.buffer);
    }
    expect(views).toEqual([false, false, true, false, false, false, true, false]);
  });
});

describe.each(pairWays)('over %s', (way) => {
  test.each(['echo', 'echoPacked'] as const)(
    '%s: large arrays are views, and go from where they are',
    async (name) => {
      const floats = new Float32Array(50_000).map((_, i) => i / 3);
      let leased = false;
      const handler = (request: All) => {
        leased =
          request.float32.buffer === leaseOf(request)?.bytes.buffer && request.float32.byteOffset % 64 === 0;
        return request;
      };
      const pair = await openPair(way, (server) =>
        server.add(ArraysDefinition, { echo: handler, echoPacked: handler }),
      );
      try {
        const request = { ...full, float32: floats };
        const reply = await createClient(ArraysDefinition, pair.channel)[name](request);
        expect(equals(All, reply, request)).toBe(true);
        if (name === 'echo') {
          expect(leased).toBe(true);
          expect(reply.float32.buffer).toBe(leaseOf(reply)?.bytes.buffer);
        }
      } finally {
        await pair.close();
      }
    },
  );
});

describe('rdma-rpc/tensor', () => {
  const bytes = Uint8Array.from({ length: 16 }, (_, i) => i);
  test.each([
    ['int8', tensor.int8, Int8Array],
    ['uint8Clamped', tensor.uint8Clamped, Uint8ClampedArray],
    ['int16', tensor.int16, Int16Array],
    ['uint16', tensor.uint16, Uint16Array],
    ['int32', tensor.int32, Int32Array],
    ['uint32', tensor.uint32, Uint32Array],
    ['bigInt64', tensor.bigInt64, BigInt64Array],
    ['bigUint64', tensor.bigUint64, BigUint64Array],
    ['float32', tensor.float32, Float32Array],
    ['float64', tensor.float64, Float64Array],
  ] as const)('%s: the same memory, both ways', (_name, view, of) => {
    const array = view(bytes);
    expect(array).toBeInstanceOf(of);
    expect([array.buffer, array.byteOffset, array.byteLength]).toEqual([bytes.buffer, 0, 16]);
    const back = tensor.bytesOf(array);
    expect([back.buffer, back.byteOffset, back.byteLength]).toEqual([bytes.buffer, 0, 16]);
    expect(view(empty)).toHaveLength(0);
  });

  test('float16 where there is one', () => {
    if ('Float16Array' in globalThis) expect(tensor.float16(bytes).byteLength).toBe(16);
    else expect(() => tensor.float16(bytes)).toThrow(/uint16\(bytes\)/);
  });

  test('the error for an invalid array says what to do', () => {
    expect(() => tensor.float32(bytes.subarray(0, 7))).toThrow(
      /7 bytes are no whole number of elements of 4/,
    );
    expect(() => tensor.float64(bytes.subarray(4, 12))).toThrow(
      /begins at byte 4 .* no multiple of 8.*bytes\.slice\(\)/,
    );
    expect(tensor.float64(bytes.subarray(4, 12).slice())).toHaveLength(1);
  });

  test.each([undefined, null, [[1, 2, 3, 4]], new ArrayBuffer(8), new Float64Array(1)])(
    'a view of what is no value of a bytes field is refused: %s',
    (value) => {
      expect(() => tensor.float32(value as never)).toThrow(
        new TypeError('Float32Array: takes the Uint8Array of a bytes field'),
      );
    },
  );

  test.each([undefined, [[1, 2]], new ArrayBuffer(8), new SharedArrayBuffer(8)])(
    'a value that is not a typed array is refused by bytesOf: %s',
    (value) => {
      expect(() => tensor.bytesOf(value as never)).toThrow(/^bytesOf takes a typed array or a DataView/);
    },
  );
});

describe('the option', () => {
  test.each([
    ['optional string s = 1 [(rdma_rpc.typed_array) = INT8];', /typed_array\) is for fields of bytes/],
    [
      'optional bytes b = 1 [(rdma_rpc.typed_array) = INT8, default = "x"];',
      /is for fields without a default/,
    ],
    ['repeated int32 n = 1 [(rdma_rpc.typed_array) = INT32];', /is for fields of bytes/],
  ])('%s is refused', async (field, why) => {
    const proto = `syntax = "proto2"; package t; import "rdma_rpc/options.proto"; message M { ${field} }`;
    expect(await diagnosticsOf({ 'a.proto': proto })).toEqual([expect.stringMatching(why)]);
  });

  test('a message with the name of such a class gets another one', async () => {
    const body =
      'import "rdma_rpc/options.proto"; message Float32Array { bytes b = 1 [(rdma_rpc.typed_array) = FLOAT32]; }';
    expect(await outputOf({ 'a.proto': proto3(body) })).toContain(
      'interface Float32Array$ {\n  b: Float32Array;',
    );
  });
});
