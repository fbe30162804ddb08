/**
 * Message types that are not protobuf: bytes as they are, and an empty message. Parts of streams are
 * submitted with these types.
 */
import { noRoom, type Writer } from '../../codec/memory/writer.ts';
import type { MessageType } from '../../codec/types.ts';

const none = new Uint8Array(0);

/** The already encoded messages of a packed part. */
export const packedBytes: MessageType<unknown, unknown> = {
  typeName: 'packed messages',
  fields: () => [],
  create: () => none,
  bound: (message) => (message as Uint8Array).byteLength,
  encodeTo(message, writer: Writer, at, limit = writer.bytes.length) {
    const bytes = message as Uint8Array;
    if (at + bytes.byteLength > limit) return noRoom(writer, at);
    writer.bytes.set(bytes, at);
    return at + bytes.byteLength;
  },
  decodeFrom: () => undefined,
  encode: (message) => message as Uint8Array,
  decode: () => undefined,
};

/** An empty message. */
export const noMessage: MessageType<unknown, unknown> = {
  typeName: 'no message',
  fields: () => [],
  create: () => undefined,
  bound: () => 0,
  encodeTo: (_message, _writer, at) => at,
  decodeFrom: () => undefined,
  encode: () => none,
  decode: () => undefined,
};
