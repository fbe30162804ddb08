/**
 * Hedging: makes a call several times, each attempt a while after the previous attempt, and uses the first
 * response. The other attempts are cancelled. repeat.ts uses this file for calls with this option.
 */

import { countRetry } from '../../boundary/contexts.ts';
import { clockMs } from '../../clock.ts';
import { failCall } from '../../core/errors/failing.ts';
import { pushback } from '../../core/errors/pushback.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';
import { leaseOf } from '../../core/lease.ts';
import type { HedgingOptions } from '../../core/repeat-options.ts';
import { mayRepeat, type Repeatable, type Repeats } from './retry.ts';

export type HedgingPolicy = Required<HedgingOptions>;
export const hedgingDefaults: Omit<HedgingPolicy, 'delayMs'> = {
  attemptsMax: 2,
  codes: [Status.UNAVAILABLE],
};

export async function hedged(
  call: Repeatable,
  policy: HedgingPolicy,
  { budget, pauses }: Repeats,
): Promise<unknown> {
  const losers = new AbortController();
  const running = new Set<Promise<void>>();
  /** Cancels the next attempt. */
  let takeBack: (() => void) | undefined;
  let begun = 0;
  let over = false;
  const { promise, resolve } = settler();

  const end = (settle: () => void): void => {
    over = true;
    takeBack?.();
    losers.abort();
    settle();
  };
  const later = (ms: number): void => {
    takeBack?.();
    takeBack = undefined;
    if (begun < policy.attemptsMax && budget.allows) takeBack = pauses.begin(ms, call.signal, begin);
  };
  const failed = (error: unknown): void => {
    const known = error instanceof RpcError && mayRepeat(call, policy.codes, error) ? error : undefined;
    if (known === undefined) {
      end(() => failCall(resolve, error));
      return;
    }
    budget.failed();
    const asked = pushback(known);
    const pauseMs = asked === 'never' ? Number.POSITIVE_INFINITY : (asked ?? 0);
    if (clockMs() + pauseMs >= call.endMs) begun = policy.attemptsMax;
    later(pauseMs);
    if (running.size === 0 && takeBack === undefined) end(() => failCall(resolve, error));
  };
  const begin = (): void => {
    takeBack = undefined;
    // The aborted signal ends the running attempts, and with them the call.
    if (call.signal?.aborted === true && running.size > 0) return;
    if (++begun > 1) countRetry();
    const attempt = call.attempt(losers.signal).then(
      (response) => {
        running.delete(attempt);
        if (over) {
          leaseOf(response as object)?.release();
          return;
        }
        budget.succeeded();
        end(() => resolve(response));
      },
      (error: unknown) => {
        running.delete(attempt);
        if (!over) failed(error);
      },
    );
    running.add(attempt);
    later(policy.delayMs);
  };
  begin();
  // The cancelled attempts are awaited, too, because nothing may touch the memory of a call after the call
  // has settled.
  return promise.finally(() => Promise.all(running));
}

function settler(): { promise: Promise<unknown>; resolve: (value: unknown) => void } {
  let resolve!: (value: unknown) => void;
  const promise = new Promise<unknown>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
