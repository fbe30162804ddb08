/** Reads and writes single values of messages that are only known by their descriptors. Used by dynamic-encode.ts and dynamic-decode.ts; speed does not matter here. */
import type { Field } from '../../runtime/codec/fields.ts';
import * as read from '../../runtime/codec/read.ts';
import { Sink } from '../../runtime/codec/sink.ts';
import type { Source } from '../../runtime/codec/source.ts';
import type { MessageType, Scalar } from '../../runtime/codec/types.ts';
import * as write from '../../runtime/codec/write.ts';

export type AnyMessage = { [key: string]: unknown };
export type AnyType = MessageType<AnyMessage, AnyMessage>;

/** What a dynamic type has on the wire. */
export interface TypeWire {
  /** Of the fields, in the order of `fieldsOf`. */
  readonly numbers: readonly number[];
  /** Numbers of those that are messages between two tags. */
  readonly delimited: ReadonlySet<number>;
  /** What is not known is kept: it may be extensions. */
  readonly keepsUnknown: boolean;
}

const wires = new WeakMap<AnyType, TypeWire>();

export function setWire(type: AnyType, wire: TypeWire): void {
  wires.set(type, wire);
}

export function typeWire(type: AnyType): TypeWire {
  const wire = wires.get(type);
  if (wire === undefined) throw new TypeError(`${type.typeName} is not a dynamic type`);
  return wire;
}

type Read = (source: Source, at: number, end: number) => unknown;
type Write = (sink: Sink, at: number, value: never, field: string) => number;

const whole =
  (writer: (bytes: Uint8Array, at: number, value: never, field: string) => number): Write =>
  (sink, at, value, field) =>
    writer(sink.bytes, at, value, field);

interface ScalarWire {
  readonly wireType: number;
  readonly read: Read;
  readonly write: Write;
}

const scalars: Readonly<Record<Scalar, ScalarWire>> = {
  double: { wireType: 1, read: read.readDouble, write: write.writeDouble },
  float: { wireType: 5, read: read.readFloat, write: write.writeFloat },
  int32: { wireType: 0, read: read.readInt32, write: whole(write.writeInt32) },
  uint32: { wireType: 0, read: read.readUint32, write: whole(write.writeUint32) },
  sint32: { wireType: 0, read: read.readSint32, write: whole(write.writeSint32) },
  fixed32: { wireType: 5, read: read.readFixed32, write: whole(write.writeFixed32) },
  sfixed32: { wireType: 5, read: read.readSfixed32, write: whole(write.writeSfixed32) },
  int64: { wireType: 0, read: read.readInt64, write: whole(write.writeInt64) },
  uint64: { wireType: 0, read: read.readUint64, write: whole(write.writeUint64) },
  sint64: { wireType: 0, read: read.readSint64, write: whole(write.writeSint64) },
  fixed64: { wireType: 1, read: read.readFixed64, write: whole(write.writeFixed64) },
  sfixed64: { wireType: 1, read: read.readSfixed64, write: whole(write.writeSfixed64) },
  bool: { wireType: 0, read: read.readBool, write: whole(write.writeBool) },
  string: {
    wireType: 2,
    read: read.readString,
    write: (sink, at, value, name) => write.writeString(sink, at, value, sink.bytes.length, name),
  },
  bytes: {
    wireType: 2,
    read: read.readBytes,
    write: (sink, at, value, name) => write.writeBytes(sink, at, value, sink.bytes.length, name),
  },
};
const enums: ScalarWire = { wireType: 0, read: read.readInt32, write: whole(write.writeEnum) };
const lengthDelimited = 2;

export const wireOf = ({ scalar }: Pick<Field, 'scalar'>): ScalarWire =>
  scalar === undefined ? enums : scalars[scalar];

/** Many values of these may come in one field. */
export const packable = (field: Field): boolean =>
  field.message === undefined && wireOf(field).wireType !== lengthDelimited;

/** More than any number takes, and what a text can. */
const roomFor = (value: unknown): number =>
  16 + (typeof value === 'string' ? 3 * value.length : value instanceof Uint8Array ? value.length : 0);

function written(room: number, writing: (sink: Sink) => number): Uint8Array {
  const sink = new Sink();
  sink.reset(new Uint8Array(room));
  return sink.bytes.subarray(0, writing(sink));
}

export function tag(number: number, wireType: number): Uint8Array {
  return written(16, ({ bytes }) => write.writeVarint(bytes, 0, number * 8 + wireType));
}

/** The value alone, without a tag. `name` is for errors. */
export function encodeScalar(wire: ScalarWire, value: unknown, name: string): Uint8Array {
  return written(roomFor(value), (sink) => wire.write(sink, 0, value as never, name));
}

export function withLength(content: Uint8Array): Uint8Array {
  return written(roomFor(content), (sink) =>
    write.writeBytes(sink, 0, content, sink.bytes.length, 'content'),
  );
}
