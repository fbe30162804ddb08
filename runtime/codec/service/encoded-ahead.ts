/**
 * Encodes messages before a gRPC server asks for them, so that encoding errors appear where they can be
 * handled. The adapters for gRPC servers store the encodings. A gRPC server soon afterwards calls the
 * serializers of the same definition with the same object, and they return the stored encodings.
 */
import type { MessageType } from '../types.ts';

interface Encoded {
  readonly type: object;
  readonly bytes: Uint8Array;
}

const ahead = new WeakMap<object, Encoded>();

/** Encodes the message in advance. Throws the errors of the message's encoder. */
export function encodeAhead<Init extends object>(type: MessageType<unknown, Init>, message: Init): void {
  ahead.set(message, { type, bytes: type.encode(message) });
}

/** Returns the message's encoding, in memory of its own. */
export function encoded<Init>(type: MessageType<unknown, Init>, message: Init): Uint8Array {
  if (typeof message === 'object' && message !== null) {
    const known = ahead.get(message);
    if (known?.type === type) {
      // Use an encoding only once, because the message may be changed and sent again.
      ahead.delete(message);
      return known.bytes;
    }
  }
  return type.encode(message);
}
