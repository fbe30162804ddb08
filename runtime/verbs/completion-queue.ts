/**
 * Completion queues, which applications poll into a record or await in batches. Waiting arms the queue and
 * sleeps on its descriptor in the event loop, without polling.
 */
import { stopInterval } from '../core/stop-timer.ts';
import type { NativeVerbsDevice } from '../native/verbs-device.ts';
import { Completions, rowsToFill, setFilled } from './completions.ts';
import { VerbsError } from './errors.ts';
import { Resource } from './resource.ts';

/** A completion queue (`struct ibv_cq`). See ibv_create_cq(3). */
export interface CompletionQueue extends Disposable, AsyncIterable<Completions> {
  readonly name: string;
  /**
   * Moves completions into the record, at most its `capacity`, and returns their number. It never waits. See
   * ibv_poll_cq(3).
   */
  poll(into: Completions): number;
  /**
   * Waits for completions and returns them in batches, for `for await`. Each batch is the same record, filled
   * again. `batchMax` is its capacity, 64 by default. Waiting keeps the process alive. The iterator ends when
   * the queue is closed. Only one loop may run at a time. When `solicitedOnly` is set, the loop sleeps until
   * the peer sends with `SendFlags.solicited`, or until a request fails. See ibv_req_notify_cq(3) and
   * ibv_get_cq_event(3).
   */
  batches(batchMax?: number, solicitedOnly?: boolean): AsyncIterableIterator<Completions>;
  /** Waits until a poll may return completions, or rejects when the queue is closed. */
  ready(solicitedOnly?: boolean): Promise<void>;
  readonly closed: boolean;
  /**
   * Closes the queue (ibv_destroy_cq(3)). Its queue pairs work until they are closed, but their completions
   * can no longer be read.
   */
  close(): void;
}

const defaultBatch = 64;
/** The longest possible interval. It only keeps the process alive, for which its length does not matter. */
const longestMs = 2 ** 31 - 1;

export class OpenCompletionQueue extends Resource implements CompletionQueue {
  readonly #native: NativeVerbsDevice;
  readonly number: number;
  /** The promise that waits for the next completion, and the interval that keeps the process alive. */
  #waiting: Waiting | undefined;
  #iterates = false;
  /** True when native code may have kept completions since the last poll. The device does not report them. */
  #mayHaveKept = false;

  constructor(native: NativeVerbsDevice, device: string, number: number) {
    super(`completion queue ${number} of ${device}`);
    this.#native = native;
    this.number = number;
  }

  poll(into: Completions): number {
    this.check();
    const count = this.#native.poll(this.number, rowsToFill(into));
    if (count < into.capacity) this.#mayHaveKept = false;
    setFilled(into, count);
    return count;
  }

  ready(solicitedOnly = false): Promise<void> {
    return this.wait(solicitedOnly, true);
  }
  /** Waits as ready() does. It keeps the process alive only with `keepsAlive`. */
  wait(solicitedOnly: boolean, keepsAlive: boolean): Promise<void> {
    if (!this.closed && this.#mayHaveKept) return new Promise((resolve) => setImmediate(resolve));
    return this.sleep(solicitedOnly, keepsAlive);
  }
  /**
   * Waits for the device. Kept completions do not end this wait, because an attempt to connect does not wait
   * for them.
   */
  sleep(solicitedOnly: boolean, keepsAlive: boolean): Promise<void> {
    if (this.closed) return Promise.reject(new VerbsError('closed', `${this.name} is closed`));
    if (this.#waiting !== undefined) {
      if (keepsAlive) this.#waiting.alive.ref();
      if (this.#waiting.solicitedOnly && !solicitedOnly) this.#arm(this.#waiting.end, false);
      return this.#waiting.promise;
    }
    const { promise, resolve, reject } = withResolvers();
    const alive = setInterval(() => undefined, longestMs);
    if (!keepsAlive) alive.unref();
    const end = (error?: Error): void => {
      // A queue that was armed twice may call this function twice, and at the second call another caller may
      // be waiting.
      if (this.#waiting?.end !== end) return;
      this.#waiting = undefined;
      stopInterval(alive);
      if (error === undefined) resolve();
      else reject(error);
    };
    this.#waiting = { promise, end, solicitedOnly, alive };
    this.#arm(end, solicitedOnly);
    return promise;
  }
  #arm(end: (error?: Error) => void, solicitedOnly: boolean): void {
    const armed = this.#native.arm(this.number, () => end(), solicitedOnly);
    // A completion may already be there. Resolves in the next iteration of the event loop, so that a caller
    // cannot keep the loop busy.
    if (armed === false) setImmediate(end);
    else if (armed !== true) end(new VerbsError('refused', `${this.name}: ${armed}`));
  }

  async *batches(batchMax = defaultBatch, solicitedOnly = false): AsyncGenerator<Completions, void, void> {
    const batch = new Completions(batchMax);
    this.check();
    if (this.#iterates) throw new VerbsError('state', `${this.name}: another loop waits for its completions`);
    this.#iterates = true;
    try {
      while (!this.closed) {
        if (this.poll(batch) > 0) yield batch;
        else await this.ready(solicitedOnly);
      }
    } catch (error) {
      if (!this.closed) throw error;
    } finally {
      this.#iterates = false;
    }
  }
  [Symbol.asyncIterator](): AsyncIterableIterator<Completions> {
    return this.batches();
  }

  isOf(native: NativeVerbsDevice): boolean {
    return native === this.#native;
  }

  /**
   * Lets connection attempts of the queue's queue pairs proceed. Returns false when they cannot proceed now.
   */
  drive(): boolean {
    this.noteKept();
    return this.#native.drive(this.number);
  }
  /** Must be called when native code may have kept completions for the next poll. */
  noteKept(): void {
    this.#mayHaveKept = true;
  }

  protected override release(): void {
    this.#native.closeCq(this.number);
    this.#waiting?.end(new VerbsError('closed', `${this.name} is closed`));
  }
}

interface Waiting {
  readonly promise: Promise<void>;
  readonly end: (error?: Error) => void;
  readonly solicitedOnly: boolean;
  readonly alive: NodeJS.Timeout;
}

function withResolvers(): { promise: Promise<void>; resolve: () => void; reject: (error: Error) => void } {
  let resolve!: () => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
