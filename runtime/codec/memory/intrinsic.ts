/**
 * Returns the length and the memory of an application's `bytes` values as the engine knows them. A subclass
 * of Uint8Array, or an own property of the array, may report other values. A `length` that is too large would
 * send bytes that were never written, left over from an earlier message in the same memory. It is called
 * wherever bytes of an application are measured, on their thread.
 */

const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object;
const getterOf = (of: object, name: string): ((this: unknown) => unknown) =>
  Object.getOwnPropertyDescriptor(of, name)!.get!;

const length = getterOf(typedArray, 'length') as (this: unknown) => number;
const byteLength = getterOf(typedArray, 'byteLength') as (this: unknown) => number;
const byteOffset = getterOf(typedArray, 'byteOffset') as (this: unknown) => number;
const buffer = getterOf(typedArray, 'buffer') as (this: unknown) => ArrayBufferLike;
const viewLength = getterOf(DataView.prototype, 'byteLength') as (this: unknown) => number;
const viewOffset = getterOf(DataView.prototype, 'byteOffset') as (this: unknown) => number;
const viewBuffer = getterOf(DataView.prototype, 'buffer') as (this: unknown) => ArrayBufferLike;
/** The getter returns undefined for everything that is not a typed array. */
const nameOf = getterOf(typedArray, Symbol.toStringTag as unknown as string) as (
  this: unknown,
) => string | undefined;

/**
 * Returns the number of elements of a typed array, and throws a TypeError for anything else. Elements cannot
 * be overridden, so `length` is true if the element at the last index exists and the next element does not.
 * This check takes two loads; a call of the getter would cost as much as encoding a small value.
 */
export function lengthOf(bytes: Uint8Array): number {
  const said = bytes.length;
  const isTrue = said >>> 0 === said && bytes[said] === undefined && bytes[said - 1] !== undefined;
  return isTrue ? said : length.call(bytes);
}

/** Returns the size in bytes of a typed array or DataView, or 0 for a DataView whose memory is detached. */
export function byteLengthOf(view: ArrayBufferView): number {
  if (nameOf.call(view) !== undefined) return byteLength.call(view);
  try {
    return viewLength.call(view);
  } catch {
    return 0;
  }
}

const shadowed = ['length', 'byteLength', 'byteOffset', 'buffer'] as const;

/** Returns whether no property of the value is overridden. */
function isPlain(bytes: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(bytes);
  if (prototype !== Uint8Array.prototype && prototype !== Buffer.prototype) return false;
  return !shadowed.some((name) => Object.hasOwn(bytes, name));
}

/**
 * Returns a Uint8Array over the same memory without overridden properties. It is the value itself when
 * neither property is overridden.
 */
export function plainBytes(view: ArrayBufferView): Uint8Array {
  if (isPlain(view)) return view as Uint8Array;
  return nameOf.call(view) !== undefined
    ? new Uint8Array(buffer.call(view), byteOffset.call(view), byteLength.call(view))
    : new Uint8Array(viewBuffer.call(view), viewOffset.call(view), viewLength.call(view));
}
