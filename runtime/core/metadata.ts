/**
 * Metadata of a request or response: a few named values beside the message, as headers are to HTTP. Made only when
 * somebody asks for it. metadata-wire.ts has its wire form.
 */

import { Buffer } from 'node:buffer';
import { inspect } from 'node:util';
import { disown } from '../codec/disown.ts';
import { metadataEntries } from '../limits.ts';

/** Text under an ordinary key, bytes under one that ends in `-bin`. */
export type MetadataValue = string | Uint8Array;
export type MetadataInit =
  | Metadata
  | Readonly<Record<string, MetadataValue | readonly MetadataValue[]>>
  | Iterable<readonly [string, MetadataValue]>;

const keyPattern = /^[0-9a-z_.-]{1,255}$/;

function checkedKey(key: string): string {
  const lower = String(key).toLowerCase();
  if (!keyPattern.test(lower)) {
    throw new TypeError(`metadata key ${JSON.stringify(key)}: use 1 to 255 of the characters 0-9 a-z _ . -`);
  }
  return lower;
}

function checkValue(key: string, value: MetadataValue): void {
  if (key.endsWith('-bin')) {
    if (!(disown(value) instanceof Uint8Array))
      throw new TypeError(`metadata ${key}: a -bin key takes a Uint8Array`);
  } else if (typeof value !== 'string') {
    disown(value);
    throw new TypeError(`metadata ${key}: takes a string (bytes go under a key that ends in -bin)`);
  }
}

let withEntries: (entries: [string, MetadataValue][]) => Metadata;

/** Like the web's `Headers`: keys are case-insensitive and may have several values, in order. At most 64 entries and 8 KiB. */
export class Metadata implements Iterable<[string, MetadataValue]> {
  readonly #entries: [string, MetadataValue][] = [];

  static {
    withEntries = (entries) => {
      const metadata = new Metadata();
      metadata.#entries.push(...entries);
      return metadata;
    };
  }

  constructor(init?: MetadataInit) {
    if (init === undefined) return;
    // Not by what JavaScript says of it: a token that stands here alone would be in that.
    if (typeof init !== 'object' || init === null)
      throw new TypeError('metadata is an object of names and values, or a list of such pairs');
    if (Symbol.iterator in init) {
      for (const [key, value] of init as Iterable<readonly [string, MetadataValue]>) this.append(key, value);
      return;
    }
    for (const [key, given] of Object.entries(init)) {
      const values = Array.isArray(given) ? (given as readonly MetadataValue[]) : [given as MetadataValue];
      for (const value of values) this.append(key, value);
    }
  }

  get size(): number {
    return this.#entries.length;
  }

  /** The first value of `key`. */
  get(key: string): MetadataValue | undefined {
    const lower = checkedKey(key);
    return this.#entries.find((entry) => entry[0] === lower)?.[1];
  }

  getAll(key: string): MetadataValue[] {
    const lower = checkedKey(key);
    return this.#entries.filter((entry) => entry[0] === lower).map((entry) => entry[1]);
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  /** Replaces all values of `key`. Throws a TypeError for a bad key, a value of the wrong kind, or entry number 65. */
  set(key: string, value: MetadataValue): this {
    const lower = checkedKey(key);
    checkValue(lower, value);
    this.delete(lower);
    return this.append(lower, value);
  }

  append(key: string, value: MetadataValue): this {
    const lower = checkedKey(key);
    checkValue(lower, value);
    if (this.#entries.length >= metadataEntries) {
      throw new TypeError(
        `metadata ${lower}: there are ${metadataEntries} entries already, the most allowed`,
      );
    }
    this.#entries.push([lower, value]);
    return this;
  }

  /** True if there was one. */
  delete(key: string): boolean {
    const lower = checkedKey(key);
    const before = this.#entries.length;
    for (let i = before - 1; i >= 0; --i) {
      if (this.#entries[i]?.[0] === lower) this.#entries.splice(i, 1);
    }
    return this.#entries.length < before;
  }

  /** For logs: lists of values by key, bytes in base64. */
  toJSON(): { [key: string]: string[] } {
    // Without a prototype: `constructor` and `__proto__` are keys like any other.
    const json = Object.create(null) as { [key: string]: string[] };
    for (const [key, value] of this.#entries) {
      json[key] ??= [];
      json[key].push(typeof value === 'string' ? value : Buffer.from(value).toString('base64'));
    }
    return json;
  }

  /** What console.log shows, of an error with a trailer too. */
  [inspect.custom](): object {
    return { ...this.toJSON() };
  }

  *entries(): IterableIterator<[string, MetadataValue]> {
    for (const [key, value] of this.#entries) yield [key, value];
  }

  [Symbol.iterator](): IterableIterator<[string, MetadataValue]> {
    return this.entries();
  }
}

/**
 * What a peer has sent that has other limits, such as one of gRPC: as many entries as there are, without those that have no form here. What is sent on over a connection of
 * ours has its limits again.
 */
export function receivedMetadata(entries: Iterable<readonly [string, MetadataValue]>): Metadata {
  const fitting = [...entries].filter(
    ([key, value]) =>
      (key.endsWith('-bin') ? value instanceof Uint8Array : typeof value === 'string') &&
      keyPattern.test(key),
  );
  return withEntries(fitting.map(([key, value]) => [key, value]));
}
