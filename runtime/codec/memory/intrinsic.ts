/**
 * Length and memory of an application's `bytes` values, as known by the engine. A subclass of Uint8Array, or
 * an own property of the array, may report other values: a `length` that is too large would send bytes that
 * were never written, left over from an earlier message in the same memory. Called wherever bytes of an
 * application are measured, on its thread.
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
/** Returns undefined for everything that is not a typed array. */
const nameOf = getterOf(typedArray, Symbol.toStringTag as unknown as string) as (
  this: unknown,
) => string | undefined;

/**
 * Returns the number of elements of a typed array, and throws a TypeError for anything else. Elements cannot
 * be overridden, so the first element that is missing shows whether `length` is true. That takes two loads,
 * where calling the getter costs as much as encoding a small value.
 */
export function lengthOf(bytes: Uint8Array): number {
  const said = bytes.length;
  const isTrue = said >>> 0 === said && bytes[said] === undefined && bytes[said - 1] !== undefined;
  return isTrue ? said : length.call(bytes);
}

/** Returns the size in bytes of a typed array or DataView; 0 for a DataView whose memory is detached. */
export function byteLengthOf(view: ArrayBufferView): number {
  if (nameOf.call(view) !== undefined) return byteLength.call(view);
  try {
    return viewLength.call(view);
  } catch {
    return 0;
  }
}

const shadowed = ['length', 'byteLength', 'byteOffset', 'buffer'] as const;

/** Whether no property of it is overridden. */
function isPlain(bytes: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(bytes);
  if (prototype !== Uint8Array.prototype && prototype !== Buffer.prototype) return false;
  return !shadowed.some((name) => Object.hasOwn(bytes, name));
}

/**
 * Returns a Uint8Array over the same memory without overridden properties: the value itself when it has none.
 */
export function plainBytes(view: ArrayBufferView): Uint8Array {
  if (isPlain(view)) return view as Uint8Array;
  return nameOf.call(view) !== undefined
    ? new Uint8Array(buffer.call(view), byteOffset.call(view), byteLength.call(view))
    : new Uint8Array(viewBuffer.call(view), viewOffset.call(view), viewLength.call(view));
}
