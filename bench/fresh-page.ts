/**
 * Measures the cost of the first touch of a page on this machine. The kernel finds and clears a page, and the
 * host of a virtual machine may have to do so too. Where that is slow, it dominates the first seconds with
 * large messages, so the head of a report states it. The orchestrator calls it before it measures.
 */
import { median } from './rows.ts';

const pageBytes = 4096;
/** More bytes than malloc keeps for itself, so that each allocation is new memory from the kernel. */
const bytes = 64 * 1024 * 1024;
const times = 3;

export interface PageCost {
  readonly freshUs: number;
  /** Time of touching the same page again, in microseconds. */
  readonly againUs: number;
}

function touchUs(memory: Uint8Array): number {
  const from = performance.now();
  for (let at = 0; at < memory.length; at += pageBytes) memory[at] = 1;
  return (1000 * (performance.now() - from)) / (memory.length / pageBytes);
}

/** Returns medians of three runs over 64 MiB, for each page of 4 KiB. */
export function pageCost(): PageCost {
  const rounds = Array.from({ length: times }, () => {
    // The memory must not be zeroed by Node, because that would be the first touch.
    const memory = Buffer.allocUnsafeSlow(bytes);
    return { fresh: touchUs(memory), again: touchUs(memory) };
  });
  return {
    freshUs: median(rounds.map(({ fresh }) => fresh)),
    againUs: median(rounds.map(({ again }) => again)),
  };
}

export function pageCostText({ freshUs, againUs }: PageCost): string {
  return `The first touch of a page of memory costs ${freshUs.toPrecision(2)} us here, a later one ${againUs.toPrecision(1)} us.`;
}
