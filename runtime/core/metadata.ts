/**
 * Metadata of a request or response: a few named values beside the message, like the headers of HTTP. A call
 * creates its Metadata on first use. The wire form is in metadata-wire.ts.
 */

import { Buffer } from 'node:buffer';
import { inspect } from 'node:util';
import { isUint8Array } from 'node:util/types';
import { disown } from '../codec/disown.ts';
import { metadataEntries } from '../limits.ts';
import { isKey, isSameKey, keyOf, type MetadataKey } from './metadata-keys.ts';

/** Text under an ordinary key, bytes under a key that ends in `-bin`. */
export type MetadataValue = string | Uint8Array;
export type MetadataInit =
  | Metadata
  | Readonly<Record<string, MetadataValue | readonly MetadataValue[]>>
  | Iterable<readonly [string, MetadataValue]>;

/** All Metadata objects without entries share this list. */
const none: never[] = [];

/** Throws a TypeError for a value of the wrong kind. */
function checkValue({ name, binary }: MetadataKey, value: MetadataValue): void {
  if (binary) {
    if (!isUint8Array(disown(value))) throw new TypeError(`metadata ${name}: a -bin key takes a Uint8Array`);
  } else if (typeof value !== 'string') {
    disown(value);
    throw new TypeError(`metadata ${name}: takes a string (bytes go under a key that ends in -bin)`);
  }
}

/** Entries as Metadata stores them: a key and its value have the same index. */
export interface MetadataEntries {
  readonly keys: readonly MetadataKey[];
  readonly values: readonly MetadataValue[];
}

let withEntries: (entries: MetadataEntries) => Metadata;
let entriesOf: (metadata: Metadata) => MetadataEntries;

/**
 * A list of entries like the web's `Headers`: keys are case-insensitive, and a key may have several values,
 * in order. Metadata can have at most 64 entries and 8 KiB.
 */
export class Metadata implements Iterable<[string, MetadataValue]> {
  /** The map is created with the first entry, because many Metadata objects stay empty. */
  #keys: MetadataKey[] = none;
  #values: MetadataValue[] = none;

  static {
    withEntries = ({ keys, values }) => {
      const metadata = new Metadata();
      metadata.#keys = keys as MetadataKey[];
      metadata.#values = values as MetadataValue[];
      return metadata;
    };
    entriesOf = (metadata) => ({ keys: metadata.#keys, values: metadata.#values });
  }

  constructor(init?: MetadataInit) {
    if (init === undefined) return;
    // The error does not show the value, because the value may be a secret token that was passed by mistake.
    if (typeof init !== 'object' || init === null)
      throw new TypeError('metadata must be an object of names and values, or a list of such pairs');
    if (isPlain(init) && new.target === Metadata) {
      // These entries were checked when they were added.
      if (init.#keys.length === 0) return;
      this.#keys = init.#keys.slice();
      this.#values = init.#values.slice();
      return;
    }
    if (Symbol.iterator in init) {
      for (const [key, value] of init as Iterable<readonly [string, MetadataValue]>) this.append(key, value);
      return;
    }
    const given = init as Readonly<Record<string, MetadataValue | readonly MetadataValue[]>>;
    for (const key of Object.keys(given)) {
      const value = given[key]!;
      if (!Array.isArray(value)) this.#add(keyOf(key), value as MetadataValue);
      else for (const each of value as readonly MetadataValue[]) this.append(key, each);
    }
  }

  get size(): number {
    return this.#keys.length;
  }

  /** Returns the first value of `key`. */
  get(key: string): MetadataValue | undefined {
    const known = keyOf(key);
    const keys = this.#keys;
    for (let i = 0; i < keys.length; ++i) {
      if (isSameKey(keys[i]!, known)) return this.#values[i];
    }
    return undefined;
  }

  getAll(key: string): MetadataValue[] {
    const { name } = keyOf(key);
    return this.#values.filter((_, i) => this.#keys[i]!.name === name);
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  /**
   * Replaces all values of `key`. Throws a TypeError for an invalid key, a value of the wrong kind, or entry
   * number 65.
   */
  set(key: string, value: MetadataValue): this {
    const known = keyOf(key);
    checkValue(known, value);
    this.delete(known.name);
    return this.append(known.name, value);
  }

  append(key: string, value: MetadataValue): this {
    this.#add(keyOf(key), value);
    return this;
  }

  #add(known: MetadataKey, value: MetadataValue): void {
    checkValue(known, value);
    if (this.#keys.length >= metadataEntries) {
      throw new TypeError(
        `metadata ${known.name}: there are ${metadataEntries} entries already, the most allowed`,
      );
    }
    if (this.#keys === none) {
      this.#keys = [known];
      this.#values = [value];
    } else {
      this.#keys.push(known);
      this.#values.push(value);
    }
  }

  /** Returns whether the key existed. */
  delete(key: string): boolean {
    const { name } = keyOf(key);
    const before = this.#keys.length;
    for (let i = before - 1; i >= 0; --i) {
      if (this.#keys[i]!.name !== name) continue;
      this.#keys.splice(i, 1);
      this.#values.splice(i, 1);
    }
    return this.#keys.length < before;
  }

  /** Returns the form that JSON.stringify uses, for logs: lists of values by key, with bytes in base64. */
  toJSON(): { [key: string]: string[] } {
    // The object has no prototype, so that `constructor` and `__proto__` are keys like any other.
    const json = Object.create(null) as { [key: string]: string[] };
    this.#values.forEach((value, i) => {
      const { name } = this.#keys[i]!;
      json[name] ??= [];
      json[name].push(typeof value === 'string' ? value : Buffer.from(value).toString('base64'));
    });
    return json;
  }

  /** Returns the object that console.log shows, also as the trailer of an error. */
  [inspect.custom](): object {
    return { ...this.toJSON() };
  }

  *entries(): IterableIterator<[string, MetadataValue]> {
    for (let i = 0; i < this.#keys.length; ++i) yield [this.#keys[i]!.name, this.#values[i]!];
  }

  [Symbol.iterator](): IterableIterator<[string, MetadataValue]> {
    return this.entries();
  }
}

/**
 * Returns whether `metadata` is exactly of this class, so that reading its entries runs no other code. A
 * subclass may run any code.
 */
function isPlain(metadata: object): metadata is Metadata {
  return Object.getPrototypeOf(metadata) === Metadata.prototype;
}

/**
 * Returns the current entries of `metadata`. The caller must not change them. Rethrows the errors of a
 * subclass.
 */
export function entriesNow(metadata: Iterable<readonly [string, MetadataValue]>): MetadataEntries {
  if (isPlain(metadata)) return entriesOf(metadata);
  const keys: MetadataKey[] = [];
  const values: MetadataValue[] = [];
  for (const [key, value] of metadata) {
    keys.push(keyOf(key));
    values.push(value);
  }
  return { keys, values };
}

/** Makes Metadata of valid entries. The caller must not use the lists of `entries` afterwards. */
export function metadataOf(entries: MetadataEntries): Metadata {
  return withEntries(entries);
}

/**
 * Makes Metadata of entries from a peer with other limits, such as a gRPC client. The number of entries is
 * not limited, and entries that are invalid here are left out. The limits apply again when the entries are
 * sent over a connection of this library.
 */
export function receivedMetadata(entries: Iterable<readonly [string, MetadataValue]>): Metadata {
  const keys: MetadataKey[] = [];
  const values: MetadataValue[] = [];
  for (const [name, value] of entries) {
    if (!isKey(name)) continue;
    const key = keyOf(name);
    if (key.binary ? !isUint8Array(value) : typeof value !== 'string') continue;
    keys.push(key);
    values.push(value);
  }
  return metadataOf({ keys, values });
}
