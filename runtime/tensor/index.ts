/**
 * `rdma-rpc/tensor`: `bytes` fields as typed arrays, and typed arrays as `bytes`, over the same memory. Each
 * function throws a RangeError in two cases: the length is not a whole number of elements, or the value is
 * not aligned. The error contains the remedy. Elements are little-endian, as on the host.
 */
import { type ArrayClass, arrayOver, bytesOf } from '../codec/typed-array.ts';

export { bytesOf };

export const int8 = (bytes: Uint8Array): Int8Array => arrayOver(Int8Array, bytes);
export const uint8Clamped = (bytes: Uint8Array): Uint8ClampedArray => arrayOver(Uint8ClampedArray, bytes);
export const int16 = (bytes: Uint8Array): Int16Array => arrayOver(Int16Array, bytes);
export const uint16 = (bytes: Uint8Array): Uint16Array => arrayOver(Uint16Array, bytes);
export const int32 = (bytes: Uint8Array): Int32Array => arrayOver(Int32Array, bytes);
export const uint32 = (bytes: Uint8Array): Uint32Array => arrayOver(Uint32Array, bytes);
export const bigInt64 = (bytes: Uint8Array): BigInt64Array => arrayOver(BigInt64Array, bytes);
export const bigUint64 = (bytes: Uint8Array): BigUint64Array => arrayOver(BigUint64Array, bytes);
export const float32 = (bytes: Uint8Array): Float32Array => arrayOver(Float32Array, bytes);
export const float64 = (bytes: Uint8Array): Float64Array => arrayOver(Float64Array, bytes);

/** TypeScript's Float16Array if its library has that type. */
type Float16 = typeof globalThis extends { Float16Array: { prototype: infer A } } ? A : ArrayBufferView;

/**
 * Returns a Float16Array over the bytes. It needs Float16Array (Node 24 or later) and otherwise throws a
 * TypeError.
 */
export function float16(bytes: Uint8Array): Float16 {
  const of = (globalThis as { Float16Array?: ArrayClass }).Float16Array;
  if (of === undefined)
    throw new TypeError(
      'float16: this Node has no Float16Array (Node 24 has it); use uint16(bytes) for the bits',
    );
  return arrayOver(of, bytes) as Float16;
}
