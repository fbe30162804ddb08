/**
 * Length and memory of an application's `bytes`, as the engine knows them. A subclass of Uint8Array, or a
 * property of the array itself, may say something else: a `length` that is too large would send bytes that
 * nobody has written, which are those of an earlier message in the same memory. Called wherever bytes of an
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
/** Undefined for all that is no typed array. */
const nameOf = getterOf(typedArray, Symbol.toStringTag as unknown as string) as (
  this: unknown,
) => string | undefined;

/**
 * Elements of a typed array. Throws a TypeError for anything else. Elements cannot be overridden, so the
 * first one that is not there tells whether `length` is true: two loads, where a call of the getter costs as
 * much as a small value.
 */
export function lengthOf(bytes: Uint8Array): number {
  const said = bytes.length;
  const isTrue = said >>> 0 === said && bytes[said] === undefined && bytes[said - 1] !== undefined;
  return isTrue ? said : length.call(bytes);
}

/** Bytes of a typed array or DataView. A DataView whose memory is gone has none. */
export function byteLengthOf(view: ArrayBufferView): number {
  if (nameOf.call(view) !== undefined) return byteLength.call(view);
  try {
    return viewLength.call(view);
  } catch {
    return 0;
  }
}

const shadowed = ['length', 'byteLength', 'byteOffset', 'buffer'] as const;

/** Nothing of it says anything but what the engine knows. */
function isPlain(bytes: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(bytes);
  if (prototype !== Uint8Array.prototype && prototype !== Buffer.prototype) return false;
  return !shadowed.some((name) => Object.hasOwn(bytes, name));
}

/**
 * A Uint8Array over the same memory on which nothing is overridden: the value itself, unless it must be
 * another.
 */
export function plainBytes(view: ArrayBufferView): Uint8Array {
  if (isPlain(view)) return view as Uint8Array;
  return nameOf.call(view) !== undefined
    ? new Uint8Array(buffer.call(view), byteOffset.call(view), byteLength.call(view))
    : new Uint8Array(viewBuffer.call(view), viewOffset.call(view), viewLength.call(view));
}
