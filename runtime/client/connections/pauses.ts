/**
 * The pauses between the attempts of calls that are made again: each may end before its time, when its call
 * is given up or its channel closed. One per channel; used by retry.ts and hedging.ts.
 */
export class Pauses {
  readonly #open = new Set<() => void>();
  #closed = false;

  /**
   * Calls `then` after `ms`, or when the signal fires or the channel closes: whatever is begun then, ends at
   * once. Never before this returns. Returns what takes it back.
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

  /** Ends all, those that are begun later too. */
  close(): void {
    this.#closed = true;
    for (const end of [...this.#open]) end();
  }
}
