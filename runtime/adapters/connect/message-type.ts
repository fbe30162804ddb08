/**
 * Makes a MessageType for a message type of protobuf-es. That library encodes and decodes the messages, and
 * the bytes are sent like the bytes of other messages. The transport uses this file, and creates one such
 * object per message type.
 */
import { create, type DescMessage, fromBinary, isMessage, type Message, toBinary } from '@bufbuild/protobuf';
import { CodecError } from '../../codec/error.ts';
import { noRoom } from '../../codec/memory/writer.ts';
import { messageType } from '../../codec/message.ts';
import type { MessageType } from '../../codec/types.ts';

/**
 * The encoding of a message. The encoding is kept when an `encodeTo` had too little room, so that `bound` and
 * the next `encodeTo` can use it.
 */
interface Encoded {
  readonly message: unknown;
  readonly bytes: Uint8Array;
  /**
   * True after `bound` was called a second time. Its first call was made because the message did not fit into
   * a slot.
   */
  readonly again: boolean;
}

function make(desc: DescMessage): MessageType<Message, object> {
  const { typeName } = desc;
  const encode = (message: object): Uint8Array => {
    try {
      return toBinary(desc, isMessage(message, desc) ? message : create(desc, message as never));
    } catch (error) {
      throw new CodecError(typeName, error instanceof Error ? error.message : String(error));
    }
  };
  let last: Encoded | undefined;
  return messageType<Message, object>({
    typeName,
    create: (init) => create(desc, init as never),
    // protobuf-es can determine the size of a message only by encoding it.
    bound: (message, writer) => {
      const again = writer.gatherBytes !== Number.POSITIVE_INFINITY;
      // The kept encoding is used at most once, because the message may have changed when it is sent again.
      const known = again && last?.message === message && !last.again;
      last = { message, bytes: known ? last!.bytes : encode(message), again };
      return last.bytes.byteLength;
    },
    encodeTo: (message, writer, at, limit = writer.bytes.length) => {
      const bytes = last?.message === message ? last.bytes : encode(message);
      if (at + bytes.byteLength > limit) {
        last = { message, bytes, again: false };
        return noRoom(writer, at);
      }
      last = undefined;
      writer.bytes.set(bytes, at);
      return at + bytes.byteLength;
    },
    decodeFrom: (source, at, end) => {
      try {
        // Decodes from a copy, because `bytes` fields may become views of the given memory, which is reused.
        const bytes = source.slice(at, end);
        source.cross(at, end);
        return fromBinary(desc, bytes);
      } catch (error) {
        throw new CodecError(typeName, error instanceof Error ? error.message : String(error), 0);
      }
    },
    fields: () => {
      throw new TypeError(`${typeName} is a type of protobuf-es, whose fields are listed by its descriptor`);
    },
  });
}

const types = new WeakMap<DescMessage, MessageType<Message, object>>();

export function typeOf(desc: DescMessage): MessageType<Message, object> {
  let type = types.get(desc);
  if (type === undefined) {
    type = make(desc);
    types.set(desc, type);
  }
  return type;
}
