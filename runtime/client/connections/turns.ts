/**
 * Attempts to connect to one address: so many of this thread at once, the others wait for their turn, in
 * order. A process that opens a thousand channels, or loses the server of a thousand, would begin as many
 * handshakes at once. It is busy with all of them then, so it answers none in time, the server sends those
 * away that keep others waiting (control/handshake/handshake-limiter.ts), and each begins anew. Each address
 * has turns of its own: one that does not answer keeps nobody from another. Used by endpoints, on their JS
 * thread.
 */
import { connectingMax } from './limits.ts';

class Queue {
  /** Attempts that have their turn. */
  underWay = 0;
  /** Attempts that have connected so far. */
  connected = 0;
  /** The others, the oldest first: what gives each its turn. */
  readonly waiting = new Set<() => void>();
}

export class Turns {
  readonly #queues = new Map<string, Queue>();

  /**
   * Resolves when it is this attempt's turn; undefined: it is now. After that it must `leave`. Rejects with
   * the reason of `signal`, or when `limitMs` have passed in which no attempt at the address has connected.
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

  /** An attempt that has had its turn is over. */
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
      // The place of the one that has left: `underWay` stays as it is.
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

/** Of all channels. */
export const turns = new Turns();
