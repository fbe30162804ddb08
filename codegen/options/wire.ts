/**
 * Reads and writes protobuf's wire format without a schema, for options at build time. It does not use the
 * runtime's codec, because that codec needs generated code.
 */

export type WireType = 0 | 1 | 2 | 3 | 4 | 5;

export class ByteReader {
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  #need(count: number): number {
    if (this.bytes.length - this.at < count) throw new RangeError('the bytes of an option end too early');
    this.at += count;
    return this.at - count;
  }

  /** Returns 64 bits, unsigned. */
  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.bytes[this.#need(1)] as number;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
    throw new RangeError('a varint of an option is too long');
  }

  tag(): { number: number; wireType: WireType } {
    const tag = Number(this.varint());
    return { number: Math.floor(tag / 8), wireType: (tag % 8) as WireType };
  }

  delimited(): Uint8Array {
    const length = Number(this.varint());
    const start = this.#need(length);
    return this.bytes.subarray(start, start + length);
  }

  fixed32(): number {
    return this.#view.getUint32(this.#need(4), true);
  }

  fixed64(): bigint {
    return this.#view.getBigUint64(this.#need(8), true);
  }

  float(): number {
    return this.#view.getFloat32(this.#need(4), true);
  }

  double(): number {
    return this.#view.getFloat64(this.#need(8), true);
  }

  /** Returns the content of a group whose start tag has been read. */
  group(number: number): Uint8Array {
    const start = this.at;
    for (;;) {
      const end = this.at;
      const tag = this.tag();
      if (tag.wireType === 4 && tag.number === number) return this.bytes.subarray(start, end);
      this.skip(tag.wireType, tag.number);
    }
  }

  skip(wireType: WireType, number: number): void {
    if (wireType === 0) this.varint();
    else if (wireType === 1) this.#need(8);
    else if (wireType === 2) this.delimited();
    else if (wireType === 3) this.group(number);
    else if (wireType === 5) this.#need(4);
    else throw new RangeError(`the bytes of an option have the wire type ${wireType}`);
  }
}

export class ByteWriter {
  readonly #parts: Uint8Array[] = [];

  varint(value: bigint): this {
    const bytes: number[] = [];
    for (; value > 127n; value >>= 7n) bytes.push(Number(value & 127n) | 128);
    return this.raw(Uint8Array.from([...bytes, Number(value)]));
  }

  tag(number: number, wireType: WireType): this {
    return this.varint(BigInt(number) * 8n + BigInt(wireType));
  }

  raw(bytes: Uint8Array): this {
    this.#parts.push(bytes);
    return this;
  }

  delimited(bytes: Uint8Array): this {
    return this.varint(BigInt(bytes.length)).raw(bytes);
  }

  #fixed(size: number, set: (view: DataView) => void): this {
    const bytes = new Uint8Array(size);
    set(new DataView(bytes.buffer));
    return this.raw(bytes);
  }

  fixed32(value: number): this {
    return this.#fixed(4, (view) => view.setUint32(0, value, true));
  }

  fixed64(value: bigint): this {
    return this.#fixed(8, (view) => view.setBigUint64(0, value, true));
  }

  float(value: number): this {
    return this.#fixed(4, (view) => view.setFloat32(0, value, true));
  }

  double(value: number): this {
    return this.#fixed(8, (view) => view.setFloat64(0, value, true));
  }

  result(): Uint8Array {
    return Uint8Array.from(Buffer.concat(this.#parts));
  }
}
