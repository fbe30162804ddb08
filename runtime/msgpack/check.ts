/**
 * Looks through MessagePack bytes of a peer before anything is made of them: lengths, depth and kinds. The decoder behind it allocates what a
 * length says before it has seen the elements, and knows kinds of values that are not for peers. Used by msgpack-type.ts.
 */
import { CodecError } from '../codec/error.ts';
import { nestingMax } from '../codec/limits.ts';

/** `undefined`, and points in time: the only extensions. */
const undefinedType = 0;
const timestampType = 0xff;
const timestampBytes: readonly number[] = [4, 8, 12];

/** Throws CodecError unless `bytes` is one value of the kinds that can be sent. */
export class Check {
  readonly #typeName: string;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(typeName: string, bytes: Uint8Array) {
    this.#typeName = typeName;
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  run(): void {
    this.#value(0);
    if (this.#at < this.#bytes.length) this.#refuse('bytes behind the value');
  }

  #refuse(reason: string): never {
    throw new CodecError(this.#typeName, reason, this.#at);
  }

  #skip(bytes: number): void {
    if (bytes > this.#bytes.length - this.#at) this.#refuse('ends in the middle of a value');
    this.#at += bytes;
  }

  /** A length of 1, 2 or 4 bytes. */
  #length(bytes: number): number {
    const at = this.#at;
    this.#skip(bytes);
    if (bytes === 1) return this.#bytes[at]!;
    return bytes === 2 ? this.#view.getUint16(at) : this.#view.getUint32(at);
  }

  #value(depth: number): void {
    if (depth > nestingMax) this.#refuse(`nested deeper than ${nestingMax}`);
    this.#skip(1);
    const token = this.#bytes[this.#at - 1]!;
    if (token < 0x80 || token >= 0xe0 || token === 0xc0 || token === 0xc2 || token === 0xc3) return;
    if (token < 0x90) this.#fields(token & 15, depth);
    else if (token < 0xa0) this.#elements(token & 15, depth);
    else if (token < 0xc0) this.#skip(token & 31);
    else if (token >= 0xc4 && token <= 0xc6) this.#skip(this.#length(1 << (token - 0xc4)));
    else if (token >= 0xc7 && token <= 0xc9) this.#extension(this.#length(1 << (token - 0xc7)));
    else if (token === 0xca || token === 0xcb) this.#skip(token === 0xca ? 4 : 8);
    else if (token >= 0xcc && token <= 0xcf) this.#skip(1 << (token - 0xcc));
    else if (token >= 0xd0 && token <= 0xd3) this.#skip(1 << (token - 0xd0));
    else if (token >= 0xd4 && token <= 0xd8) this.#extension(1 << (token - 0xd4));
    else if (token >= 0xd9 && token <= 0xdb) this.#skip(this.#length(1 << (token - 0xd9)));
    else if (token === 0xdc || token === 0xdd) this.#elements(this.#length(token === 0xdc ? 2 : 4), depth);
    else if (token === 0xde || token === 0xdf) this.#fields(this.#length(token === 0xde ? 2 : 4), depth);
    else this.#refuse(`byte 0x${token.toString(16)} begins no value`);
  }

  #elements(count: number, depth: number): void {
    if (count > this.#bytes.length - this.#at) this.#refuse(`an array of ${count} that cannot be there`);
    for (let i = 0; i < count; ++i) this.#value(depth + 1);
  }

  #fields(count: number, depth: number): void {
    if (2 * count > this.#bytes.length - this.#at) this.#refuse(`an object of ${count} that cannot be there`);
    for (let i = 0; i < count; ++i) {
      const token = this.#bytes[this.#at]!;
      if (!((token >= 0xa0 && token < 0xc0) || (token >= 0xd9 && token <= 0xdb)))
        this.#refuse('a key that is no string');
      this.#value(depth + 1);
      this.#value(depth + 1);
    }
  }

  #extension(bytes: number): void {
    const type = this.#length(1);
    const known =
      type === undefinedType ? bytes === 1 : type === timestampType && timestampBytes.includes(bytes);
    if (!known) this.#refuse(`extension ${type} of ${bytes} bytes`);
    this.#skip(bytes);
  }
}
