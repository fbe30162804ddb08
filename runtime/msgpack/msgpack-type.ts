/**
 * Messages without a schema: the codec for requests and responses of a service made by defineService.
 * The library msgpackr does the encoding. This file wraps it in a MessageType, so that large `Uint8Array`s
 * are sent like `bytes` fields of generated messages. It also checks everything that a peer sends.
 *
 * On the wire a message is one MessagePack value. A message with large binaries has four parts: 0xc1 (which
 * never begins a value), the length of the next part as u32 in little-endian, the value [message with nil in
 * their places, [[path, length], ...]], and the binaries.
 */
import { Packr, Unpackr } from '#msgpackr';
import { CodecError } from '../codec/error.ts';
import type { Source } from '../codec/memory/source.ts';
import { noRoom, type Writer } from '../codec/memory/writer.ts';
import { messageType } from '../codec/message.ts';
import type { MessageType } from '../codec/types.ts';
import { Check } from './check.ts';
import { type Lifted, lift, Measure, type Path } from './encode.ts';

const liftedMark = 0xc1;
const headBytes = 5;
const plain = {
  useRecords: false,
  moreTypes: false,
  mapsAsObjects: true,
  copyBuffers: true,
  // Allows objects of more than 65,535 fields, and makes the heads of small objects smaller.
  variableMapSize: true,
  // A field called toJSON is treated like any other field.
  useToJSON: false,
} as const;
// Both objects keep internal state between calls, but no data of one message reaches the next.
const packr = new Packr(plain);
const unpackr = new Unpackr(plain);

function pack(typeName: string, value: unknown): Uint8Array {
  try {
    return packr.pack(value);
  } catch (error) {
    throw new CodecError(typeName, error instanceof Error ? error.message : String(error));
  }
}

/** Decodes the same bytes that were checked. If a peer can write to the memory, both steps use a copy. */
function unpack(typeName: string, source: Source, start: number, end: number): unknown {
  const bytes = source.shared ? source.bytes.slice(start, end) : source.bytes.subarray(start, end);
  new Check(typeName, bytes).run();
  try {
    return unpackr.unpack(bytes);
  } catch (error) {
    throw new CodecError(typeName, error instanceof Error ? error.message : String(error), 0);
  }
}

/** Puts `value` at the position that a path names. Only a nil of the peer may be replaced. */
function putBack(typeName: string, root: unknown, path: unknown, value: Uint8Array): unknown {
  const refuse = (): never => {
    throw new CodecError(typeName, 'a path that leads nowhere', 0);
  };
  if (!Array.isArray(path)) return refuse();
  if (path.length === 0) return root === null ? value : refuse();
  let at = root;
  for (const [i, key] of (path as Path).entries()) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return refuse();
    if (Array.isArray(at) !== (typeof key === 'number')) return refuse();
    const holder = at as Record<string | number, unknown>;
    at = holder[key];
    if (i < path.length - 1) continue;
    if (at !== null) return refuse();
    holder[key] = value;
  }
  return root;
}

function decodeLifted(typeName: string, source: Source, at: number, end: number): unknown {
  const { bytes } = source;
  const refuse = (why: string): never => {
    throw new CodecError(typeName, why, 0);
  };
  if (end - at < headBytes) refuse('ends in the middle of a value');
  const bodyBytes = new DataView(bytes.buffer, bytes.byteOffset).getUint32(at + 1, true);
  const body = at + headBytes;
  if (bodyBytes > end - body) refuse('ends in the middle of a value');
  const parts = unpack(typeName, source, body, body + bodyBytes);
  if (!Array.isArray(parts) || parts.length !== 2 || !Array.isArray(parts[1]))
    return refuse('the list of its binary values is missing');
  let value: unknown = parts[0];
  let from = body + bodyBytes;
  for (const entry of parts[1] as unknown[]) {
    const [path, length] = Array.isArray(entry) && entry.length === 2 ? (entry as unknown[]) : [];
    if (!Number.isInteger(length) || (length as number) < 0 || (length as number) > end - from)
      return refuse('the list of its binary values is wrong');
    const stop = from + (length as number);
    value = putBack(typeName, value, path, source.value(from, stop));
    from = stop;
  }
  return from === end ? value : refuse('bytes behind the value');
}

/**
 * Returns the codec for values of type `T`. `typeName` is for error texts. The form of a peer's values is
 * checked; that they are of type `T` is not checked.
 */
export function msgpackType<T>(typeName: string): MessageType<T, T> {
  return messageType<T, T>({
    typeName,
    create: (init) => init as T,
    bound: (message, writer) => {
      const bytes = new Measure(typeName).of(message, writer);
      return writer.planned === 0 ? bytes : bytes + 4 * headBytes;
    },
    encodeTo: (message: T, writer: Writer, at: number, limit: number = writer.bytes.length): number => {
      const lifted: Lifted[] = [];
      const apart = writer.gatherBytes !== Number.POSITIVE_INFINITY;
      // The value is measured first, because measuring costs less than packing a large message that is then
      // refused. With out-of-line binaries, `bound` has already been called.
      const measure = new Measure(typeName);
      if (!apart && at + measure.of(message, writer) > limit) return noRoom(writer, at);
      const rest = apart || measure.odd ? lift(message, writer.gatherBytes, lifted) : message;
      if (lifted.length === 0) {
        const packed = pack(typeName, rest);
        // A getter may return more now than it did when the value was measured.
        if (packed.byteLength > limit - at) return noRoom(writer, at);
        writer.bytes.set(packed, at);
        return at + packed.byteLength;
      }
      const list = lifted.map(({ path, value }) => [path, value.byteLength]);
      const packed = pack(typeName, [rest, list]);
      if (headBytes + packed.byteLength > limit - at) return noRoom(writer, at);
      writer.bytes[at] = liftedMark;
      writer.view.setUint32(at + 1, packed.byteLength, true);
      writer.bytes.set(packed, at + headBytes);
      const end = at + headBytes + packed.byteLength;
      for (const { value } of lifted) writer.addOutOfLine(end, value);
      return end;
    },
    decodeFrom: (source, at, end) => {
      const { bytes } = source;
      if (end > at && bytes[at] === liftedMark) return decodeLifted(typeName, source, at, end) as T;
      return unpack(typeName, source, at, end) as T;
    },
    fields: () => {
      throw new TypeError(`${typeName} has no schema`);
    },
  });
}
