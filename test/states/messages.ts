/**
 * Defines the messages of the tests of states. Each has its call and its index, and a body that shows when it
 * was changed on its way.
 */
import type { Payload, PayloadInit } from '../interop/gen/interop.rdma.ts';
import { isPattern, pattern } from '../interop/sizes.ts';
import type { Ledger } from './ledger.ts';

/** The sizes of bodies. Slots have 1 KiB here, so the sizes range from inline to several READs. */
export const sizes: readonly number[] = [0, 10, 250, 900, 1100, 5000, 40_000];

const idsMax = 1 << 12;

/** Returns message `index` of a call. */
export function payload(id: number, bytes: number, index = 0): PayloadInit {
  const seed = id + index * idsMax;
  return { body: pattern(bytes, seed), seed };
}

/**
 * Returns the call that a payload belongs to. Wrong bytes, a position in its stream other than `index`, and a
 * size other than `bytes` are faults.
 */
export function looked(ledger: Ledger, given: Payload | undefined, index = 0, bytes?: number): number {
  const seed = given?.seed ?? 0;
  const id = seed % idsMax;
  const body = given?.body ?? new Uint8Array(0);
  const at = Math.floor(seed / idsMax);
  if (!isPattern(body, seed)) ledger.fault(`message ${at} of call ${id} arrived with other bytes`);
  if (at !== index) ledger.fault(`message ${at} of call ${id} arrived in place of ${index}`);
  if (bytes !== undefined && body.byteLength !== bytes) {
    ledger.fault(`message ${at} of call ${id} has ${body.byteLength} bytes instead of ${bytes}`);
  }
  return id;
}
