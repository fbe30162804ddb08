/**
 * Lays typed arrays over `bytes`, and returns bytes of typed arrays, without a copy. Elements have the byte
 * order of the host, which is little-endian on all supported systems, as on the wire. This file has the
 * functions of `rdma-rpc/tensor`, and the functions that generated code calls for fields with the option
 * rdma_rpc.typed_array, on the thread of the call.
 */
import { mismatch } from './error.ts';
import { byteLengthOf, plainBytes } from './memory/intrinsic.ts';
import type { Source } from './memory/source.ts';
import { lowIndex } from './primitives/int64.ts';
import { readBytes } from './primitives/read.ts';

/** The typed array classes that a field can be declared as. */
export const arrays = {
  Int8: Int8Array,
  Int16: Int16Array,
  Uint16: Uint16Array,
  Int32: Int32Array,
  Uint32: Uint32Array,
  BigInt64: BigInt64Array,
  BigUint64: BigUint64Array,
  Float32: Float32Array,
  Float64: Float64Array,
} as const;
export type ArrayName = keyof typeof arrays;

/** One of the classes of `arrays`, or any other class of typed arrays. */
export interface ArrayClass<A extends ArrayBufferView = ArrayBufferView> {
  readonly name: string;
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): A;
}

/** The defaults of fields that are typed arrays. */
export const noArrays: { readonly [K in ArrayName]: InstanceType<(typeof arrays)[K]> } = {
  Int8: new Int8Array(0),
  Int16: new Int16Array(0),
  Uint16: new Uint16Array(0),
  Int32: new Int32Array(0),
  Uint32: new Uint32Array(0),
  BigInt64: new BigInt64Array(0),
  BigUint64: new BigUint64Array(0),
  Float32: new Float32Array(0),
  Float64: new Float64Array(0),
};

/**
 * Returns an array of that class over the same memory. Throws a RangeError when length or alignment do not
 * allow it.
 */
export function arrayOver<A extends ArrayBufferView>(of: ArrayClass<A>, bytes: Uint8Array): A {
  const size = of.BYTES_PER_ELEMENT;
  // instanceof is not used, because test runners have separate classes in the realm of each file.
  if (!ArrayBuffer.isView(bytes) || bytes.BYTES_PER_ELEMENT !== 1)
    throw new TypeError(`${of.name}: takes the Uint8Array of a bytes field`);
  const { byteLength, byteOffset } = bytes;
  if (lowIndex !== 0 && size > 1)
    throw new RangeError(`${of.name}: this host is big-endian, elements on the wire are little-endian`);
  if (byteLength % size !== 0) {
    throw new RangeError(
      `${of.name}: ${byteLength} bytes are no whole number of elements of ${size}; does the sender mean another type?`,
    );
  }
  if (byteOffset % size !== 0) {
    throw new RangeError(
      `${of.name}: the value begins at byte ${byteOffset} of its memory, which is no multiple of ${size}. ` +
        'Received values of 64 bytes and more do not, unless the peer is of an older release. Give a copy: bytes.slice()',
    );
  }
  return new of(bytes.buffer, byteOffset, byteLength / size);
}

/**
 * Returns the bytes of a typed array or DataView, over the same memory, for a `bytes` field. Throws a
 * TypeError for anything else.
 */
export function bytesOf(array: ArrayBufferView): Uint8Array {
  if (array instanceof Uint8Array) return plainBytes(array);
  // For an ArrayBuffer or a plain array the last line would create an empty value, and the data would be
  // lost.
  if (!ArrayBuffer.isView(array))
    throw new TypeError(
      'bytesOf takes a typed array or a DataView; for an ArrayBuffer, pass new Uint8Array(buffer)',
    );
  return plainBytes(array);
}

const withArticle = (name: string): string => `${name.startsWith('I') ? 'an' : 'a'} ${name}`;

/** Returns the bytes of a field's value for encoding. The value must be an array of that class. */
export function octets(array: ArrayBufferView, of: ArrayClass, field: string): Uint8Array {
  if (!(array instanceof of)) mismatch(field, array, withArticle(of.name));
  return bytesOf(array);
}

/** Returns whether a typed-array field without presence must be sent. */
export function hasArray(array: ArrayBufferView, of: ArrayClass, field: string): boolean {
  if (!(array instanceof of)) mismatch(field, array, withArticle(of.name));
  return byteLengthOf(array) !== 0;
}

/**
 * Decodes the array of a field, as a view of the memory wherever a `bytes` field would be a view. A value at
 * an unaligned position is copied.
 */
export function readArray<A extends ArrayBufferView>(
  source: Source,
  at: number,
  end: number,
  of: ArrayClass<A>,
): A {
  const bytes = readBytes(source, at, end);
  const size = of.BYTES_PER_ELEMENT;
  if (bytes.length % size !== 0)
    source.fail(at, `${bytes.length} bytes are no whole number of elements of a ${of.name}`);
  return arrayOver(of, bytes.byteOffset % size === 0 ? bytes : bytes.slice());
}

/**
 * Returns a typed array over bytes from another source, for JSON and MessagePack. Throws CodecError when the
 * bytes do not fit the class.
 */
export function arrayFromBytes(name: ArrayName, bytes: Uint8Array, field: string): ArrayBufferView {
  const of: ArrayClass = arrays[name];
  const size = of.BYTES_PER_ELEMENT;
  if (bytes.length % size !== 0) mismatch(field, bytes, `a whole number of elements of a ${of.name}`);
  return arrayOver(of, bytes.byteOffset % size === 0 ? bytes : bytes.slice());
}
