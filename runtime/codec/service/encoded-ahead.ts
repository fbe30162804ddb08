/**
 * Messages that were encoded before a gRPC server asks for it, so that what is wrong with one is known where
 * something can be done about it. Written by the adapters for gRPC servers, read by the serializers of the
 * same definition, which servers call with the same object soon after.
 */
import type { MessageType } from '../types.ts';

interface Encoded {
  readonly type: object;
  readonly bytes: Uint8Array;
}

const ahead = new WeakMap<object, Encoded>();

/** Throws what the message's encoder throws. */
export function encodeAhead<Init extends object>(type: MessageType<unknown, Init>, message: Init): void {
  ahead.set(message, { type, bytes: type.encode(message) });
}

/** The message's bytes, out of memory that is its own. */
export function encoded<Init>(type: MessageType<unknown, Init>, message: Init): Uint8Array {
  if (typeof message === 'object' && message !== null) {
    const known = ahead.get(message);
    if (known?.type === type) {
      // Once: it may be changed and sent again.
      ahead.delete(message);
      return known.bytes;
    }
  }
  return type.encode(message);
}
