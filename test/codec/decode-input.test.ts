/**
 * Tests the values that decode() accepts: a Uint8Array of any realm and any subclass. Any other value from
 * plain JavaScript causes a TypeError that names the message; it is never decoded to an empty message.
 */
import { runInNewContext } from 'node:vm';
import { Any, CodecError, createRegistry, type MessageType, StringValue } from 'rdma-rpc/codec';
import { toJson } from 'rdma-rpc/json';
import { describe, expect, test } from 'vitest';

const bytes = StringValue.encode({ value: 'hello' });
const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
const decode = (input: unknown) => (StringValue as MessageType<unknown>).decode(input as Uint8Array);

test.each<[string, unknown]>([
  ['a Uint8Array', bytes],
  ['a Buffer', Buffer.from(bytes)],
  ['a view of a larger buffer', Buffer.concat([Buffer.from('xx'), bytes]).subarray(2)],
  ['a subclass', new (class extends Uint8Array {})(bytes)],
  ['a Uint8Array of another realm', runInNewContext(`Uint8Array.of(${bytes.join()})`)],
])('%s', (_, input) => {
  expect(decode(input)).toEqual({ value: 'hello' });
});

test.each<[string, unknown, string]>([
  ['an ArrayBuffer', buffer, 'got ArrayBuffer; give new Uint8Array(buffer)'],
  ['a SharedArrayBuffer', new SharedArrayBuffer(8), 'got SharedArrayBuffer; give new Uint8Array(buffer)'],
  ['an array', [...bytes], 'got Array'],
  ['a string', 'abc', 'got string'],
  ['a promise', Promise.resolve(bytes), 'got Promise'],
  [
    'an object with the properties of a Uint8Array',
    { buffer, byteOffset: 0, byteLength: 7, length: 7 },
    'got Object',
  ],
  ['another typed array', new Uint16Array(4), 'got Uint16Array'],
  ['a DataView', new DataView(buffer), 'got DataView'],
  ['null', null, 'got null'],
  ['nothing', undefined, 'got undefined'],
  ['a number', 0, 'got number'],
])('%s is a TypeError by name', (_, input, got) => {
  expect(() => decode(input)).toThrow(
    new TypeError(`google.protobuf.StringValue: decode takes a Uint8Array, ${got}`),
  );
});

test('a promise that rejects causes no unhandled rejection', () => {
  expect(() => decode(Promise.reject(new Error('not handled')))).toThrow(TypeError);
});

test('an array whose buffer has been transferred is not an empty message', () => {
  const gone = Uint8Array.from(bytes);
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  expect(() => decode(gone)).toThrow(
    /^google\.protobuf\.StringValue: decode was given .* transferred or detached$/,
  );
});

describe('a bytes field with a value of another type is an error, too', () => {
  const any = { typeUrl: 'type.googleapis.com/google.protobuf.StringValue', value: buffer as never };
  test('in JSON of an Any', () => {
    const registry = createRegistry(StringValue);
    expect(() => toJson(Any, any, { registry })).toThrow(CodecError);
  });
});
