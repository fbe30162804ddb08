/**
 * Checks MessagePack bytes of a peer before they are decoded: lengths, depth, kinds, texts, and the memory
 * that decoding will need. The decoder allocates memory for any length that a message states, before it has
 * seen the elements. It also supports kinds of values that peers must not send. msgpack-type.ts uses it.
 */
import { isUtf8 } from 'node:buffer';
import { CodecError } from '../codec/error.ts';
import { nestingMax } from '../codec/limits.ts';
import { decodedBytesMax } from '../limits.ts';
import { Cost, DecodingCost } from './decoding-cost.ts';

/** The only allowed extensions are `undefined` and points in time. */
const undefinedType = 0;
const timestampType = 0xff;
const timestampBytes: readonly number[] = [4, 8, 12];
const nanosMax = 999_999_999;
/** Range of a Date in milliseconds, in both directions from 1970. */
const dateMsMax = 8.64e15;
/** A native call checks texts that are longer than this. */
const loopBytesMax = 64;
const proto = Buffer.from('__proto__');

/** All messages share this object, because messages are checked one at a time. */
const cost = new DecodingCost();

/** Throws CodecError unless `bytes` is a single value of the allowed kinds. */
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
    cost.begin();
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

  /** Reads a length of 1, 2 or 4 bytes. */
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
    else if (token < 0xc0) this.#text(token & 31);
    else if (token >= 0xc4 && token <= 0xc6) this.#binary(this.#length(1 << (token - 0xc4)));
    else if (token >= 0xc7 && token <= 0xc9) this.#extension(this.#length(1 << (token - 0xc7)));
    else if (token === 0xca || token === 0xcb) this.#skip(token === 0xca ? 4 : 8);
    else if (token >= 0xcc && token <= 0xcf) this.#integer(1 << (token - 0xcc));
    else if (token >= 0xd0 && token <= 0xd3) this.#integer(1 << (token - 0xd0));
    else if (token >= 0xd4 && token <= 0xd8) this.#extension(1 << (token - 0xd4));
    else if (token >= 0xd9 && token <= 0xdb) this.#text(this.#length(1 << (token - 0xd9)));
    else if (token === 0xdc || token === 0xdd) this.#elements(this.#length(token === 0xdc ? 2 : 4), depth);
    else if (token === 0xde || token === 0xdf) this.#fields(this.#length(token === 0xde ? 2 : 4), depth);
    else this.#refuse(`byte 0x${token.toString(16)} begins no value`);
  }

  /** Counts memory needed for decoding, because few bytes may need much memory. */
  #count(bytes: number): void {
    if (cost.add(bytes)) return;
    this.#refuse(
      `more than ${decodedBytesMax / 1024 ** 2} MiB of memory when it is decoded: send several messages, or numbers as a Uint8Array`,
    );
  }

  #binary(bytes: number): void {
    this.#skip(bytes);
    this.#count(Cost.binary + bytes);
  }

  #integer(bytes: number): void {
    this.#skip(bytes);
    if (bytes === 8) this.#count(Cost.bigint);
  }

  #text(bytes: number): void {
    const from = this.#at;
    this.#skip(bytes);
    this.#count(Cost.text + bytes);
    this.#checkText(from, this.#at);
  }

  #checkText(from: number, end: number): void {
    const bytes = this.#bytes;
    let at = from;
    if (end - from <= loopBytesMax) while (at < end && bytes[at]! < 0x80) ++at;
    if (at < end && !isUtf8(bytes.subarray(at, end))) this.#refuse('a string that is not UTF-8');
  }

  #elements(count: number, depth: number): void {
    if (count > this.#bytes.length - this.#at)
      this.#refuse(`the message is too short for an array of ${count} elements`);
    this.#count(Cost.array + Cost.element * count);
    for (let i = 0; i < count; ++i) this.#value(depth + 1);
  }

  #fields(count: number, depth: number): void {
    if (2 * count > this.#bytes.length - this.#at)
      this.#refuse(`the message is too short for an object of ${count} members`);
    this.#count(Cost.object + cost.ofFields(count));
    for (let i = 0; i < count; ++i) {
      this.#key(count);
      this.#value(depth + 1);
    }
  }

  #key(fields: number): void {
    this.#skip(1);
    const token = this.#bytes[this.#at - 1]!;
    let bytes = token & 31;
    if (token >= 0xd9 && token <= 0xdb) bytes = this.#length(1 << (token - 0xd9));
    else if (token < 0xa0 || token >= 0xc0) this.#refuse('a key that is no string');
    const from = this.#at;
    this.#skip(bytes);
    this.#count(cost.ofKey(this.#bytes, from, this.#at, fields));
    this.#checkText(from, this.#at);
    if (bytes === proto.length && proto.equals(this.#bytes.subarray(from, this.#at)))
      this.#refuse('a key __proto__, which cannot travel as MessagePack');
  }

  #extension(bytes: number): void {
    const type = this.#length(1);
    const known =
      type === undefinedType ? bytes === 1 : type === timestampType && timestampBytes.includes(bytes);
    if (!known) this.#refuse(`extension ${type} of ${bytes} bytes`);
    const from = this.#at;
    this.#skip(bytes);
    if (type !== timestampType) return;
    this.#count(Cost.date);
    if (bytes > 4) this.#checkTime(from, bytes);
  }

  /** Checks a time of seconds and nanoseconds, in 64 or 96 bits. */
  #checkTime(from: number, bytes: number): void {
    const view = this.#view;
    const nanos = bytes === 8 ? view.getUint32(from) >>> 2 : view.getUint32(from);
    if (nanos > nanosMax) this.#refuse(`a timestamp with ${nanos} nanoseconds`);
    if (bytes === 8) return;
    const ms = Number(view.getBigInt64(from + 4)) * 1000 + Math.floor(nanos / 1e6);
    if (Math.abs(ms) > dateMsMax) this.#refuse('a timestamp that no Date can hold');
  }
}
