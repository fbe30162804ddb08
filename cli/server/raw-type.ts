/** A message that is already encoded, or not yet decoded, as a MessageType: the runtime moves its bytes. Used by `rdma-rpc call`. */

import { noRoom } from '../../runtime/codec/memory/sink.ts';
import { messageType } from '../../runtime/codec/message.ts';
import type { MessageType } from '../../runtime/codec/types.ts';

export function rawType(typeName: string): MessageType<Uint8Array, Uint8Array> {
  return messageType<Uint8Array, Uint8Array>({
    typeName,
    create: (bytes = new Uint8Array(0)) => bytes,
    bound: (bytes) => bytes.byteLength,
    encodeTo: (bytes, sink, at, limit = sink.bytes.length) => {
      if (at + bytes.byteLength > limit) return noRoom(sink, at);
      sink.bytes.set(bytes, at);
      return at + bytes.byteLength;
    },
    decodeFrom: (source, at, end) => {
      // A copy: what it is read from is used again.
      const bytes = source.slice(at, end);
      source.cross(at, end);
      return bytes;
    },
    fields: () => {
      throw new TypeError(`${typeName}: its fields are in its descriptor`);
    },
  });
}
