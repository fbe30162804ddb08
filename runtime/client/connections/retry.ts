/**
 * Retries a failed call with growing pauses, within one deadline, as long as the retry budget allows it.
 * repeat.ts uses this file for calls with this option.
 */

import { countRetry } from '../../boundary/contexts.ts';
import { clockMs } from '../../clock.ts';
import { pushback } from '../../core/errors/pushback.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status, type StatusCode } from '../../core/errors/status.ts';
import type { RetryOptions } from '../../core/repeat-options.ts';
import { Backoff } from './backoff.ts';
import type { Pauses } from './pauses.ts';
import type { RetryBudget } from './retry-budget.ts';

export type RetryPolicy = Required<RetryOptions>;
export const retryDefaults: RetryPolicy = {
  attemptsMax: 3,
  backoffMs: 50,
  backoffMaxMs: 1000,
  codes: [Status.UNAVAILABLE],
};

/** A call that may be retried. */
export interface Repeatable {
  /** True when any error allows another attempt; otherwise only errors with `processed: 'no'` do. */
  readonly idempotent: boolean;
  /** Deadline on the clock of clock.ts, or Infinity for no deadline. */
  readonly endMs: number;
  /** Cancels all attempts. */
  readonly signal: AbortSignal | undefined;
  /** Makes one attempt, which also ends at the deadline or when one of the signals is aborted. */
  attempt(signal: AbortSignal | undefined): Promise<unknown>;
}

/** Returns whether a failed attempt may be followed by another one. */
export function mayRepeat(call: Repeatable, codes: readonly StatusCode[], error: RpcError): boolean {
  if (call.signal?.aborted || !codes.includes(error.code)) return false;
  return call.idempotent || error.processed === 'no';
}

/** State that the calls of one channel share. */
export interface Repeats {
  readonly budget: RetryBudget;
  readonly pauses: Pauses;
}

export async function retried(
  call: Repeatable,
  policy: RetryPolicy,
  { budget, pauses }: Repeats,
): Promise<unknown> {
  const backoff = new Backoff(policy.backoffMs, policy.backoffMaxMs);
  for (let attempt = 1; ; ++attempt) {
    if (attempt > 1) countRetry();
    try {
      const response = await call.attempt(undefined);
      budget.succeeded();
      return response;
    } catch (cause) {
      if (!(cause instanceof RpcError) || !mayRepeat(call, policy.codes, cause)) throw cause;
      budget.failed();
      const asked = pushback(cause);
      const pauseMs = asked ?? backoff.next();
      if (attempt >= policy.attemptsMax || pauseMs === 'never' || !budget.allows) throw cause;
      if (clockMs() + pauseMs >= call.endMs) throw cause;
      // If the signal is aborted during the pause, the next attempt ends before it begins.
      await new Promise<void>((resolve) => pauses.begin(pauseMs, call.signal, resolve));
    }
  }
}
