/**
 * Lists sizes of messages just below and above every limit at which a message takes another path.
 */
import type { MessageType } from 'rdma-rpc/codec';

/** A frame without metadata consists of a message and this number of additional bytes. */
const headerBytes = 16;
/**
 * Sizes that a queue pair sends inline: one for soft-iWARP, shm, sim and most NICs, and one for soft-RoCE.
 */
const inlineFrames = [80, 226, 256, 512];
/** Number of bytes that a slot of shm holds, without the header. */
const slotBytes = 8192;
const shmSlotBytes = 17 * 1024;

const around = (limit: number): number[] => [limit - 1, limit, limit + 1];

/** Encoded sizes of messages: just below, at and just above each limit, and large sizes. */
export const boundaries: readonly number[] = [
  ...inlineFrames.flatMap((frame) => around(frame - headerBytes)),
  ...around(slotBytes),
  ...around(shmSlotBytes),
  64 * 1024,
  1024 * 1024 + 1,
];

/**
 * Returns the largest body with which the message has at most `bytes` bytes. Returns 0 if the rest of the
 * message is already longer, which happens for a peer whose name has a long path and process id.
 */
export function bodyFor<Init>(
  type: MessageType<unknown, Init>,
  message: (body: Uint8Array) => Init,
  bytes: number,
): number {
  const rest = type.encode(message(new Uint8Array(0))).byteLength;
  let body = Math.max(0, bytes - rest);
  while (body > 0 && type.encode(message(new Uint8Array(body))).byteLength > bytes) --body;
  return body;
}

export function pattern(bytes: number, seed: number): Uint8Array {
  return new Uint8Array(Buffer.alloc(bytes, `${seed}-pattern-`));
}

/** Compares without vitest's own comparison, which takes seconds for a megabyte. */
export function isPattern(body: Uint8Array, seed: number): boolean {
  return Buffer.compare(body, pattern(body.byteLength, seed)) === 0;
}
