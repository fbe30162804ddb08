/**
 * Options as a tree: a message of any type, which is decoded and encoded by its descriptor. Fields are
 * written in the order of their numbers, which need not be the order of reading, so that the parser and
 * protoc give the same bytes. It is used only at build time, so speed does not matter.
 */
import type { FieldDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { labels, typeName } from '../descriptor/types.ts';
import type { DeclaredKind, Schema } from '../link/schema.ts';
import { ByteReader, ByteWriter, type WireType } from './wire.ts';

export type TreeValue = bigint | number | boolean | string | Uint8Array | OptionTree;

export interface OptionField {
  readonly descriptor: FieldDescriptorProto;
  /** Full name of an extension, or undefined for a field of the message itself. */
  readonly extension: string | undefined;
}

const fieldCache = new WeakMap<Schema, Map<string, Map<number, OptionField>>>();

/** Returns the fields of a message and its extensions, by number. */
export function fieldsOf(schema: Schema, message: DeclaredKind<'message'>): ReadonlyMap<number, OptionField> {
  let cache = fieldCache.get(schema);
  if (cache === undefined) {
    cache = new Map();
    fieldCache.set(schema, cache);
  }
  let fields = cache.get(message.fullName);
  if (fields === undefined) {
    fields = new Map();
    for (const descriptor of message.descriptor.field)
      fields.set(descriptor.number ?? 0, { descriptor, extension: undefined });
    for (const { descriptor, fullName } of schema.extensions.get(message.fullName) ?? []) {
      const { number = 0 } = descriptor;
      // If two fields have the same number, which the linker reports, the first field wins, because an error
      // in another file must not change the meaning of a correct file.
      if (!fields.has(number)) fields.set(number, { descriptor, extension: fullName });
    }
    cache.set(message.fullName, fields);
  }
  return fields;
}

export function isRepeated({ descriptor }: OptionField): boolean {
  return descriptor.label === labels.repeated;
}

const wireTypes: Readonly<Record<string, WireType>> = {
  double: 1,
  fixed64: 1,
  sfixed64: 1,
  float: 5,
  fixed32: 5,
  sfixed32: 5,
  string: 2,
  bytes: 2,
  message: 2,
  group: 3,
};

function wireTypeOf({ descriptor }: OptionField): WireType {
  return wireTypes[typeName(descriptor.type) ?? ''] ?? 0;
}

export class OptionTree {
  readonly message: DeclaredKind<'message'>;
  readonly values = new Map<number, { readonly field: OptionField; readonly list: TreeValue[] }>();
  /** Fields that no file of this run declares, with their tags. */
  readonly #unknown: Uint8Array[] = [];
  readonly #schema: Schema;

  constructor(schema: Schema, message: DeclaredKind<'message'>) {
    this.#schema = schema;
    this.message = message;
  }

  /** Returns the list of a field's values, which is created when the field has none. */
  list(field: OptionField): TreeValue[] {
    const number = field.descriptor.number ?? 0;
    let entry = this.values.get(number);
    if (entry === undefined) {
      entry = { field, list: [] };
      this.values.set(number, entry);
    }
    return entry.list;
  }

  /** Returns the last value of the field with this number. */
  get(number: number): TreeValue | undefined {
    return this.values.get(number)?.list.at(-1);
  }

  tree(number: number): OptionTree | undefined {
    const value = this.get(number);
    return value instanceof OptionTree ? value : undefined;
  }

  flag(number: number): boolean {
    return this.get(number) === true;
  }

  /** Returns an integer or enum, or 0 when it is absent. */
  integer(number: number): number {
    return Number(this.get(number) ?? 0);
  }

  /**
   * Merges `bytes` into the tree: singular values are replaced, and singular messages are merged. Values of
   * the wrong wire type are kept as unknown fields, because the bytes may come from a file that declares the
   * number differently.
   */
  decode(bytes: Uint8Array): void {
    const fields = fieldsOf(this.#schema, this.message);
    const reader = new ByteReader(bytes);
    while (reader.at < bytes.length) {
      const start = reader.at;
      const { number, wireType } = reader.tag();
      const field = fields.get(number);
      const wanted = field === undefined ? undefined : wireTypeOf(field);
      const content = reader.at;
      reader.skip(wireType, number);
      const end = reader.at;
      const inner = new ByteReader(bytes.subarray(content, end));
      if (field === undefined || !this.#take(field, inner, wireType, wanted, number))
        this.#unknown.push(bytes.slice(start, end));
    }
  }

  /** Returns false, without reading, when the value does not fit the field. */
  #take(
    field: OptionField,
    reader: ByteReader,
    wireType: WireType,
    wanted: WireType | undefined,
    number: number,
  ): boolean {
    const before = this.values.get(field.descriptor.number ?? 0)?.list.slice();
    try {
      if (wireType === wanted) this.#put(field, reader, wireType, number);
      else if (wireType === 2 && wanted !== 3 && isRepeated(field)) {
        const packed = new ByteReader(reader.delimited());
        while (packed.at < packed.bytes.length) this.list(field).push(this.#scalar(field, packed));
      } else return false;
      return true;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      if (before === undefined) this.values.delete(number);
      else this.list(field).splice(0, Number.POSITIVE_INFINITY, ...before);
      return false;
    }
  }

  #put(field: OptionField, reader: ByteReader, wireType: WireType, number: number): void {
    const list = this.list(field);
    const type = typeName(field.descriptor.type);
    if (type !== 'message' && type !== 'group') {
      const value = this.#scalar(field, reader);
      if (!isRepeated(field)) list.length = 0;
      list.push(value);
      return;
    }
    const content = wireType === 3 ? reader.group(number) : reader.delimited();
    const message = this.#schema.messageOf(field.descriptor.typeName ?? '');
    if (message === undefined) return;
    const last = list[0];
    const tree =
      !isRepeated(field) && last instanceof OptionTree ? last : new OptionTree(this.#schema, message);
    tree.decode(content);
    if (tree !== last) list.push(tree);
  }

  #scalar({ descriptor }: OptionField, reader: ByteReader): TreeValue {
    switch (typeName(descriptor.type)) {
      case 'double':
        return reader.double();
      case 'float':
        return reader.float();
      case 'bool':
        return reader.varint() !== 0n;
      case 'string':
        return Buffer.from(reader.delimited()).toString('utf8');
      case 'bytes':
        return reader.delimited();
      case 'fixed32':
      case 'sfixed32':
        return BigInt(descriptor.type === 7 ? reader.fixed32() : reader.fixed32() | 0);
      case 'fixed64':
        return reader.fixed64();
      case 'sfixed64':
        return BigInt.asIntN(64, reader.fixed64());
      case 'sint32':
      case 'sint64': {
        const zigzag = reader.varint();
        return (zigzag >> 1n) ^ -(zigzag & 1n);
      }
      case 'uint32':
      case 'uint64':
        return reader.varint();
      default:
        return BigInt.asIntN(64, reader.varint());
    }
  }

  encode(): Uint8Array {
    const writer = new ByteWriter();
    for (const [number, { field, list }] of [...this.values].sort(([a], [b]) => a - b)) {
      for (const value of list) this.#write(writer, field, number, value);
    }
    for (const bytes of this.#unknown) writer.raw(bytes);
    return writer.result();
  }

  #write(writer: ByteWriter, field: OptionField, number: number, value: TreeValue): void {
    const wireType = wireTypeOf(field);
    writer.tag(number, wireType);
    if (value instanceof OptionTree) {
      if (wireType === 3) writer.raw(value.encode()).tag(number, 4);
      else writer.delimited(value.encode());
    } else if (typeof value === 'string') writer.delimited(Buffer.from(value, 'utf8'));
    else if (value instanceof Uint8Array) writer.delimited(value);
    else if (typeof value === 'number') {
      if (wireType === 5) writer.float(value);
      else writer.double(value);
    } else if (typeof value === 'boolean') writer.varint(value ? 1n : 0n);
    else if (wireType === 5) writer.fixed32(Number(BigInt.asUintN(32, value)));
    else if (wireType === 1) writer.fixed64(BigInt.asUintN(64, value));
    else {
      const type = typeName(field.descriptor.type);
      const zigzag = type === 'sint32' || type === 'sint64';
      writer.varint(BigInt.asUintN(64, zigzag ? (value << 1n) ^ (value >> 63n) : value));
    }
  }
}

/** Decodes an option message into values by field number. */
export function decodeOptions(
  schema: Schema,
  type: string,
  bytes: Uint8Array | undefined,
): OptionTree | undefined {
  const message = schema.messageOf(`google.protobuf.${type}`);
  if (message === undefined || bytes === undefined) return undefined;
  const tree = new OptionTree(schema, message);
  tree.decode(bytes);
  return tree;
}
