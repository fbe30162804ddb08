/**
 * A slot of the limit, with hand-written protobuf of `Msg`. It has tags, lengths and varints as any protobuf
 * reader expects them. Both processes use it on the hot path; bench/peers.ts also uses the number of slots.
 */
import type { Msg } from '../peer.ts';

const lengthAt = 5;
const messageAt = 8;
export const slotBytes = 64;
/** The number of slots of a ring, and of buffers in each part of the pool, as in shared.h. */
export const slots = 1024;
export const poolBuffers = 8;
const payloadTag = (1 << 3) | 2;
const idTag = (2 << 3) | 0;

/** The number of payload bytes that fit a slot beside an id of any size. */
export const inlineMax = slotBytes - messageAt - 2 - 11;

/**
 * Writes the message of the slot at `slot`. The payload must have at most `inlineMax` bytes, and the id must
 * be a safe integer.
 */
export function writeMsg(bytes: Uint8Array, slot: number, message: Msg): void {
  const { payload } = message;
  const start = slot + messageAt;
  let at = start;
  if (payload.length > 0) {
    bytes[at] = payloadTag;
    bytes[at + 1] = payload.length;
    bytes.set(payload, at + 2);
    at += 2 + payload.length;
  }
  let id = message.id;
  if (id !== 0) {
    bytes[at++] = idTag;
    for (; id >= 0x1000_0000; id = Math.floor(id / 128)) bytes[at++] = (id % 128) | 128;
    for (; id > 127; id >>>= 7) bytes[at++] = (id & 127) | 128;
    bytes[at++] = id;
  }
  bytes[slot + lengthAt] = at - start;
}

const empty = new Uint8Array(0);

/**
 * Reads the message of the slot at `slot`. The payload of the result is a copy. Throws RangeError for a field
 * that Msg does not have.
 */
export function readMsg(bytes: Uint8Array, slot: number): Msg {
  let at = slot + messageAt;
  const end = at + bytes[slot + lengthAt]!;
  let payload = empty;
  let id = 0;
  while (at < end) {
    const tag = bytes[at++]!;
    if (tag === payloadTag) {
      const length = bytes[at++]!;
      payload = bytes.slice(at, at + length);
      at += length;
    } else if (tag === idTag) {
      let scale = 1;
      let byte = bytes[at++]!;
      for (; byte > 127; byte = bytes[at++]!) {
        id += (byte & 127) * scale;
        scale *= 128;
      }
      id += byte * scale;
    } else {
      throw new RangeError(`limit: field tag ${tag} is not one of Msg's`);
    }
  }
  return { payload, id };
}
