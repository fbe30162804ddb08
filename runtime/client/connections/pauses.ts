/**
 * The pauses between the attempts of retried and hedged calls. A pause ends early when its call is cancelled
 * or its channel is closed. Each channel has one object; retry.ts and hedging.ts use it.
 */
export class Pauses {
  readonly #open = new Set<() => void>();
  #closed = false;

  /**
   * Calls `then` after `ms`, but never before `begin` returns. Calls it earlier when the signal is aborted or
   * the channel closes; the next attempt then ends at once. Returns a function that cancels the pause.
   */
  begin(ms: number, signal: AbortSignal | undefined, then: () => void): () => void {
    const stop = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      this.#open.delete(end);
    };
    const end = (): void => {
      stop();
      then();
    };
    const timer = setTimeout(end, this.#closed || signal?.aborted === true ? 0 : ms);
    signal?.addEventListener('abort', end);
    this.#open.add(end);
    return stop;
  }

  /** Ends all pauses, including pauses that begin later. */
  close(): void {
    this.#closed = true;
    for (const end of [...this.#open]) end();
  }
}
