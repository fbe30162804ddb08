/**
 * The handlers that every peer serves, and the payload that shows whether they have read it. Both processes
 * use this file.
 */
import type { BenchHandlers, Msg } from './peer.ts';

const lastByte = 0xff;

/** Fills a payload so that `lastByte` is its last byte and appears nowhere else. */
export function fillPayload(payload: Uint8Array): void {
  for (let i = 0; i < payload.length; i++) payload[i] = i % 251;
  if (payload.length > 0) payload[payload.length - 1] = lastByte;
}

/**
 * Returns the number of bytes up to and including the last byte. It reads all bytes, at the speed of memchr.
 * Returns 0 when the payload is incomplete.
 */
export function readPayload(payload: Uint8Array): number {
  return Buffer.prototype.indexOf.call(payload, lastByte) + 1;
}

/**
 * Checks length and last byte of an echoed payload, which is the cheapest proof that the payload has arrived.
 */
export function endsRight(payload: Uint8Array, bytes: number): boolean {
  return payload.length === bytes && payload[bytes - 1] === lastByte;
}

const empty = new Uint8Array(0);

export const handlers: BenchHandlers = {
  async echo(message: Msg): Promise<Msg> {
    return { payload: message.payload, id: message.id };
  },
  async put(message: Msg): Promise<Msg> {
    return { payload: empty, id: readPayload(message.payload) };
  },
};
