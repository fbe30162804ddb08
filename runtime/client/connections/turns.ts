/**
 * Limits the concurrent attempts of this thread to connect to one address. Further attempts wait in order. A
 * process that opens a thousand channels, or loses the server of a thousand channels, would otherwise begin a
 * thousand handshakes at once. The process would be too busy to answer any of them in time, the server would
 * evict the slow handshakes (control/handshake/handshake-limiter.ts), and all of them would start again. Each
 * address has its own limit, so that an address that does not answer does not block others. Endpoints use
 * this file on their JS thread.
 */
import { connectingMax } from './limits.ts';

class Queue {
  /** Number of running attempts. */
  underWay = 0;
  /** Number of attempts that have connected so far. */
  connected = 0;
  /** The waiting attempts, the oldest first, as functions that start them. */
  readonly waiting = new Set<() => void>();
}

export class Turns {
  readonly #queues = new Map<string, Queue>();

  /**
   * Returns undefined when the attempt may begin now, otherwise a promise that resolves when it may begin.
   * The attempt must call `leave` afterwards. Rejects with the reason of `signal`, or when no attempt at the
   * address has connected for `limitMs`.
   */
  enter(address: string, limitMs: number, signal: AbortSignal): Promise<void> | undefined {
    let queue = this.#queues.get(address);
    if (queue === undefined) {
      queue = new Queue();
      this.#queues.set(address, queue);
    }
    if (queue.underWay === connectingMax) return this.#wait(queue, limitMs, signal);
    ++queue.underWay;
    return undefined;
  }

  /** Runs when an attempt has ended. */
  leave(address: string, connected: boolean): void {
    const queue = this.#queues.get(address);
    if (queue === undefined) return;
    if (connected) ++queue.connected;
    const [next] = queue.waiting;
    if (next !== undefined) next();
    else if (--queue.underWay === 0) this.#queues.delete(address);
  }

  #wait(queue: Queue, limitMs: number, signal: AbortSignal): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      let { connected } = queue;
      let timer: NodeJS.Timeout;
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abandoned);
        queue.waiting.delete(begin);
      };
      // The next attempt takes over the slot of the attempt that has ended, so `underWay` does not change.
      const begin = (): void => {
        end();
        resolve();
      };
      const abandoned = (): void => {
        end();
        reject(signal.reason);
      };
      const look = (): void => {
        if (queue.connected === connected) {
          end();
          const text = `${queue.underWay} attempts at this address are under way, and none has connected within ${limitMs} ms (option connectTimeoutMs of the channel)`;
          reject(new Error(text));
          return;
        }
        connected = queue.connected;
        timer = setTimeout(look, limitMs);
      };
      timer = setTimeout(look, limitMs);
      signal.addEventListener('abort', abandoned);
      queue.waiting.add(begin);
    });
  }
}

/** The turns of all channels. */
export const turns = new Turns();
