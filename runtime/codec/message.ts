/**
 * Completes a generated message: adds the convenience methods `encode` and `decode`, which allocate their own
 * memory, and has small functions that generated code shares. Generated code calls it once per message when
 * its module is loaded.
 */
import { disown } from './disown.ts';
import { fieldEntries } from './fields.ts';
import { encodeMeasured } from './measured.ts';
import { Source } from './memory/source.ts';
import { Writer } from './memory/writer.ts';
import type { MessageType } from './types.ts';

/**
 * Messages whose upper bound is at most this number of bytes are encoded in shared scratch memory and then
 * copied at their real length.
 */
const scratchBytes = 64 * 1024;
/** Maximum number of unused bytes behind the end of a larger encoding that keeps its memory. */
const spareMax = 1024;

const scratch = new Uint8Array(scratchBytes);
const writer = new Writer();
const source = new Source();
const nothing = new Uint8Array(0);

/** The default of `bytes` fields. */
export const noBytes: Uint8Array = nothing;

/** Value of a oneof whose field `K` is set. */
export interface Case<K extends string, V> {
  readonly case: K;
  readonly value: V;
}

/** Value of a oneof in which no field is set. */
export interface Unset {
  readonly case: undefined;
  readonly value?: undefined;
}
export const unset: Unset = Object.freeze({ case: undefined, value: undefined });

/** Returns the value of a oneof in which the field `key` is set. */
export function choice<K extends string, V>(key: K, value: V): Case<K, V> {
  return { case: key, value };
}

/** Returns an empty map. It has no prototype, so a key `__proto__` is a key like any other. */
export function newMap<M extends object>(): M {
  return Object.create(null) as M;
}

/** Copies a map and passes each value through `convert`. Returns an empty map for undefined. */
export function copyMap<V, C = V>(
  from: { readonly [key: string]: V } | undefined,
  convert?: (value: V) => C,
): { [key: string]: C } {
  const copy = newMap<{ [key: string]: V | C }>();
  if (from !== undefined) {
    for (const key of Object.keys(from)) {
      const value = from[key] as V;
      copy[key] = convert === undefined ? value : convert(value);
    }
  }
  return copy as { [key: string]: C };
}

/** Copies a list of values that need no conversion. */
export function copyList<V>(from: readonly V[] | undefined): V[] {
  return from === undefined ? [] : [...from];
}

type Core<T, Init> = Omit<MessageType<T, Init>, 'encode' | 'decode'>;

/**
 * Encodes a message that does not fit the shared scratch memory into newly allocated memory. The caller gets
 * that memory if only a little of it remains unused.
 */
function encodeLarge<T, Init>(message: Init, core: Core<T, Init>): Uint8Array {
  writer.reset(nothing);
  const room = core.bound(message, writer);
  // The memory is not cleared, because that would cost as much as writing it.
  const memory = new Uint8Array(Buffer.allocUnsafeSlow(room).buffer);
  writer.reset(memory);
  try {
    const end = encodeMeasured(core, message, writer, 0);
    if (room - end > spareMax) return memory.slice(0, end);
    // The caller sees all of this memory, which may contain data of other code.
    memory.fill(0, end);
    return memory.subarray(0, end);
  } finally {
    writer.reset(nothing);
  }
}

const tagOf = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
)?.get;

/**
 * Returns a plain Uint8Array, because a Buffer would make the readers polymorphic, and its slices would be
 * Buffers. Throws for any value that is not a Uint8Array, because such a value would be read as an empty
 * message.
 */
function plainBytes(bytes: Uint8Array, typeName: string): Uint8Array {
  // instanceof is not used, because test runners have separate classes in the realm of each file.
  if (tagOf?.call(bytes) === 'Uint8Array')
    return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  disown(bytes);
  const given: unknown = bytes;
  const kind = given === null ? 'null' : typeof given;
  const name =
    kind === 'object' || kind === 'function' ? Object.prototype.toString.call(given).slice(8, -1) : kind;
  const remedy = name.endsWith('ArrayBuffer') ? '; give new Uint8Array(buffer)' : '';
  throw new TypeError(`${typeName}: decode takes a Uint8Array, got ${name}${remedy}`);
}

/** Throws for a transferred buffer. Its bytes are gone, and it must not be mistaken for an empty message. */
function refuseDetached(bytes: Uint8Array, typeName: string): void {
  try {
    // This throws for a detached array, as every method of typed arrays does; `buffer.detached` does not
    // exist on all Node versions.
    bytes.at(0);
  } catch {
    throw new TypeError(
      `${typeName}: decode was given a Uint8Array whose ArrayBuffer was transferred or detached`,
    );
  }
}

export function messageType<T, Init>(core: Core<T, Init>): MessageType<T, Init> {
  const { typeName, create, bound, encodeTo, decodeFrom, fields, reserved } = core;
  return {
    typeName,
    create,
    bound,
    encodeTo,
    decodeFrom,
    fields,
    reserved,
    encode(message: Init): Uint8Array {
      writer.reset(scratch);
      const end = encodeTo(message, writer, 0, scratchBytes);
      return writer.full ? encodeLarge(message, core) : scratch.slice(0, end);
    },
    decode(bytes: Uint8Array): T {
      const plain = bytes?.constructor === Uint8Array ? bytes : plainBytes(bytes, typeName);
      if (plain.length === 0) refuseDetached(plain, typeName);
      source.reset(plain);
      const message = decodeFrom(source, 0, plain.length);
      source.reset(nothing, false);
      return message;
    },
  };
}

/**
 * Does the same as `messageType` for generated code, with positional arguments, because property names would
 * be more code to compile for every message. `fields` and `more` are the arguments of `fieldEntries`. `more`
 * is a function that is called only when it is needed, because it refers to messages that are declared later.
 * Code from older generators passes a function as `fields`.
 */
export function generatedType<T, Init>(
  typeName: string,
  create: Core<T, Init>['create'],
  bound: Core<T, Init>['bound'],
  encodeTo: Core<T, Init>['encodeTo'],
  decodeFrom: Core<T, Init>['decodeFrom'],
  fields: string | Core<T, Init>['fields'],
  more?: () => readonly unknown[],
  reserved?: string,
): MessageType<T, Init> {
  const entries = typeof fields === 'string' ? () => fieldEntries(fields, more?.()) : fields;
  return messageType({ typeName, create, bound, encodeTo, decodeFrom, fields: entries, reserved });
}
