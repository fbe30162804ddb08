/**
 * Checks values before they are encoded: their kinds, the room that they need at most, and which
 * `Uint8Array`s are large enough to be sent in place. msgpack-type.ts uses it.
 */
import { CodecError } from '../codec/error.ts';
import { nestingMax } from '../codec/limits.ts';
import { lengthOf, plainBytes } from '../codec/memory/intrinsic.ts';
import { isDetached, whyDetached } from '../codec/memory/lent.ts';
import { outOfLineMax, type Writer } from '../codec/memory/writer.ts';

/** A position in a value, as a list of object keys and array indices. */
export type Path = readonly (string | number)[];

/** A large value, which is sent behind the rest of the message. */
export interface Lifted {
  readonly path: Path;
  readonly value: Uint8Array;
}

/** Maximum size of the head of a string, an array, an object or a binary. */
const headBytes = 5;
/** Shorter strings are not measured; 3 bytes per UTF-16 unit are assumed for them. */
const measuredFrom = 1024;
const int64Min = -(2n ** 63n);
const uint64Max = 2n ** 64n - 1n;

/** Every supported Node has `isWellFormed`, but TypeScript's library for ES2023 does not declare it. */
function isWellFormed(text: string): boolean {
  return (text as string & { isWellFormed(): boolean }).isWellFormed();
}

function stringBytes(text: string): number {
  return headBytes + (text.length < measuredFrom ? text.length * 3 : Buffer.byteLength(text));
}

/**
 * Measures one message at a time. A getter of the message may make a call. Another object measures the
 * message of that call.
 */
export class Measure {
  readonly #typeName: string;
  #path: (string | number)[] = [];
  #writer: Writer | undefined;
  #odd = false;
  /** Room for the list of lifted values. */
  #listBytes = 0;

  constructor(typeName: string) {
    this.#typeName = typeName;
  }

  /**
   * Returns the maximum size of the value in memory, and plans out-of-line values in the writer. Throws
   * CodecError for values that cannot be sent.
   */
  of(value: unknown, writer: Writer): number {
    this.#path = [];
    this.#writer = writer;
    this.#odd = false;
    this.#listBytes = 0;
    return this.#bound(value) + this.#listBytes;
  }

  /** Whether the last measured value contains bytes with overridden properties. */
  get odd(): boolean {
    return this.#odd;
  }

  #refuse(what: string): never {
    const where = this.#path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('');
    throw new CodecError(`${this.#typeName}${where.slice(0, 200)}`, what);
  }

  #bound(value: unknown): number {
    switch (typeof value) {
      case 'string':
        if (!isWellFormed(value)) this.#refuse('half of a surrogate pair cannot be sent');
        return stringBytes(value);
      case 'number':
      case 'boolean':
      case 'undefined':
        return 9;
      case 'bigint':
        if (value < int64Min || value > uint64Max) this.#refuse('a bigint of more than 64 bits');
        return 9;
      case 'object':
        return value === null ? 1 : this.#object(value);
      default:
        return this.#refuse(`a ${typeof value} cannot be sent`);
    }
  }

  #object(value: object): number {
    if (this.#path.length >= nestingMax) this.#refuse(`nested deeper than ${nestingMax}`);
    if (value instanceof Uint8Array) return this.#bytes(value);
    if (Array.isArray(value)) {
      let bytes = headBytes;
      for (let i = 0; i < value.length; ++i) bytes += this.#at(i, value[i]);
      return bytes;
    }
    if (value instanceof Date) {
      if (Number.isNaN(value.getTime())) this.#refuse('an invalid Date');
      return 15;
    }
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) {
      const { name } = value.constructor ?? {};
      this.#refuse(
        `${name || 'an object of a class'} cannot be sent; give plain objects, arrays, Uint8Array or Date`,
      );
    }
    let bytes = headBytes;
    for (const [key, field] of Object.entries(value)) {
      if (!isWellFormed(key)) this.#refuse('a key with half of a surrogate pair cannot be sent');
      // Decoders rename this key to protect prototypes.
      if (key === '__proto__') this.#refuse('a key __proto__ cannot travel as MessagePack');
      bytes += stringBytes(key) + this.#at(key, field);
    }
    return bytes;
  }

  #at(key: string | number, value: unknown): number {
    this.#path.push(key);
    const bytes = this.#bound(value);
    this.#path.pop();
    return bytes;
  }

  #bytes(value: Uint8Array): number {
    const writer = this.#writer!;
    const length = lengthOf(value);
    if (length === 0 && isDetached(value)) this.#refuse(whyDetached(value.buffer));
    // The packing code would use the overridden properties.
    if (plainBytes(value) !== value) this.#odd = true;
    if (length < writer.gatherBytes || writer.planned >= outOfLineMax) return headBytes + length;
    ++writer.planned;
    writer.gathered += length;
    if (length < writer.apartBytes) writer.copied += length;
    for (const key of this.#path) this.#listBytes += typeof key === 'string' ? stringBytes(key) : headBytes;
    this.#listBytes += 4 * headBytes;
    return 1;
  }
}

/**
 * Returns the value with null in place of its large `Uint8Array`s, which are added to `lifted`, and with
 * plain arrays in place of arrays that override properties. The original stays unchanged.
 */
export function lift(value: unknown, atLeastBytes: number, lifted: Lifted[], path: Path = []): unknown {
  if (value instanceof Uint8Array) {
    const bytes = plainBytes(value);
    if (bytes.byteLength < atLeastBytes || lifted.length >= outOfLineMax) return bytes;
    lifted.push({ path, value: bytes });
    return null;
  }
  if (Array.isArray(value)) return value.map((each, i) => lift(each, atLeastBytes, lifted, [...path, i]));
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  const copy = Object.create(null) as Record<string, unknown>;
  for (const [key, field] of Object.entries(value))
    copy[key] = lift(field, atLeastBytes, lifted, [...path, key]);
  return copy;
}
