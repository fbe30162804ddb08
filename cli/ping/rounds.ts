/**
 * Makes the round trips of `rdma-rpc ping` on an open session, one after another, and summarizes them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Stopped } from './reach.ts';
import type { Session } from './session.ts';
import { toMicroseconds } from './steps.ts';

export interface Round {
  /** Absent when the server does not answer pings of the sideband. */
  readonly sidebandMs?: number;
  readonly fabricMs: number;
}

export interface Spread {
  readonly count: number;
  readonly min: number;
  readonly avg: number;
  readonly max: number;
}

export function spreadOf(values: readonly number[]): Spread | undefined {
  if (values.length === 0) return undefined;
  const sum = values.reduce((all, value) => all + value, 0);
  return {
    count: values.length,
    min: Math.min(...values),
    avg: toMicroseconds(sum / values.length),
    max: Math.max(...values),
  };
}

/**
 * Makes both round trips. The session over the sideband comes first. Otherwise the time of the server's event
 * loop would be counted as time of the fabric.
 */
async function roundOn(session: Session): Promise<Round> {
  const sidebandMs = session.pings
    ? await session.sideband().catch((error: Error) => {
        throw new Stopped('sideband', error);
      })
    : undefined;
  const fabricMs = await session.fabric().catch((error: Error) => {
    throw new Stopped('session', error);
  });
  return { ...(sidebandMs !== undefined && { sidebandMs }), fabricMs };
}

/**
 * Makes `count` rounds, one every `intervalMs`, and passes each to `onRound`. Resolves early when `signal` is
 * aborted. Rejects with Stopped.
 */
export async function makeRounds(
  session: Session,
  { count, intervalMs }: { readonly count: number; readonly intervalMs: number },
  onRound: (round: Round, number: number) => void,
  signal: AbortSignal,
): Promise<void> {
  for (let number = 1; number <= count && !signal.aborted; ++number) {
    onRound(await roundOn(session), number);
    if (number < count) await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
  }
}
