/**
 * Lets handlers, producers and readers of the tests of states wait for a number of events of the simulated
 * fabric.
 */
import type { RpcError } from 'rdma-rpc';

interface Waiting {
  events: number;
  readonly go: () => void;
}

export class Pauses {
  readonly #waiting = new Set<Waiting>();

  /** Resolves after this number of events; rejects with the signal's reason if the signal fires earlier. */
  wait(events: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting.delete(waiting);
        reject(signal?.reason as RpcError);
      };
      const waiting = {
        events,
        go: () => {
          signal?.removeEventListener('abort', giveUp);
          resolve();
        },
      };
      if (signal?.aborted) return giveUp();
      this.#waiting.add(waiting);
      signal?.addEventListener('abort', giveUp);
    });
  }

  /** Records that one event has happened. */
  tick(): void {
    for (const waiting of this.#waiting) {
      if (--waiting.events > 0) continue;
      this.#waiting.delete(waiting);
      waiting.go();
    }
  }

  get empty(): boolean {
    return this.#waiting.size === 0;
  }
}
