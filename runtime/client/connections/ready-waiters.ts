/** Those who wait in `channel.ready()`. Owned by a channel. */
import { clockMs } from '../../clock.ts';
import { type Abortable, listen, unlisten } from '../../core/abort-listeners.ts';
import { unavailable } from '../../core/errors/failure.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';

interface Waiter {
  /** Waits through failed attempts until its time is over. */
  readonly waitForReady: boolean;
  /** When its time is over, ms on the clock of `clockMs()`; Infinity for one attempt. */
  readonly endMs: number;
  readonly resolve: () => void;
  readonly reject: (error: RpcError) => void;
}

export class ReadyWaiters {
  readonly #waiters = new Set<Waiter>();

  get size(): number {
    return this.#waiters.size;
  }

  /** When those end that wait. */
  *deadlines(): Generator<number> {
    for (const { endMs } of this.#waiters) yield endMs;
  }

  /** `timeoutMs` undefined: for one attempt. `lastError` is asked when the time is over. */
  wait(
    name: string,
    timeoutMs: number | undefined,
    signal: AbortSignal | undefined,
    lastError: () => RpcError | undefined,
  ): Promise<void> {
    const cancelled = (): RpcError =>
      new RpcError(Status.CANCELLED, 'ready: cancelled by the caller', {
        processed: 'no',
        cause: signal?.reason,
      });
    if (signal?.aborted) return Promise.reject(cancelled());
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const leave = (): void => {
        this.#waiters.delete(waiter);
        clearTimeout(timer);
        if (signal !== undefined) unlisten(signal, waiter);
      };
      const waiter: Waiter & Abortable = {
        waitForReady: timeoutMs !== undefined,
        endMs: timeoutMs === undefined ? Infinity : clockMs() + timeoutMs,
        resolve: () => {
          leave();
          resolve();
        },
        reject: (error) => {
          leave();
          reject(error);
        },
        onAbort: () => waiter.reject(cancelled()),
      };
      this.#waiters.add(waiter);
      if (signal !== undefined) listen(signal, waiter);
      if (timeoutMs === undefined) return;
      timer = setTimeout(() => {
        const last = lastError();
        const why = last === undefined ? 'the attempt to connect has not ended' : last.rawMessage;
        waiter.reject(unavailable(`${name}: not ready within ${timeoutMs} ms: ${why}`, 'no', last));
      }, timeoutMs);
    });
  }

  resolveAll(): void {
    for (const waiter of this.#waiters) waiter.resolve();
  }

  /** An attempt has failed: the end for those who wait for one only. */
  rejectUnlessWaitForReady(error: RpcError): void {
    for (const waiter of this.#waiters) if (!waiter.waitForReady) waiter.reject(error);
  }

  /** `error`: of each, made only where somebody waits. */
  rejectAll(error: () => RpcError): void {
    for (const waiter of this.#waiters) waiter.reject(error());
  }
}
