/** The callers that wait in `channel.ready()`. A channel owns this object. */
import { clockMs } from '../../clock.ts';
import { type Abortable, listen, unlisten } from '../../core/abort-listeners.ts';
import { unavailable } from '../../core/errors/failure.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import { Status } from '../../core/errors/status.ts';

interface Waiter {
  /** True when the caller keeps waiting after failed attempts, until its time has passed. */
  readonly waitForReady: boolean;
  /**
   * The end of the caller's waiting time in milliseconds on the clock of `clockMs()`, or Infinity when the
   * caller waits for one attempt.
   */
  readonly endMs: number;
  readonly resolve: () => void;
  readonly reject: (error: RpcError) => void;
}

export class ReadyWaiters {
  readonly #waiters = new Set<Waiter>();

  get size(): number {
    return this.#waiters.size;
  }

  /** The deadlines of the waiting callers. */
  *deadlines(): Generator<number> {
    for (const { endMs } of this.#waiters) yield endMs;
  }

  /**
   * Waits until the channel is connected. Waits for only one attempt when `timeoutMs` is undefined.
   * `lastError` is called when the time has passed.
   */
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

  /** Runs when an attempt has failed. Rejects the callers that wait for only one attempt. */
  rejectUnlessWaitForReady(error: RpcError): void {
    for (const waiter of this.#waiters) if (!waiter.waitForReady) waiter.reject(error);
  }

  /** Rejects the promises of all waiting callers. `error` creates the error of each waiting caller. */
  rejectAll(error: () => RpcError): void {
    for (const waiter of this.#waiters) waiter.reject(error());
  }
}
