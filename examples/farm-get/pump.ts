/**
 * Polls a completion queue while requests are in flight, and passes each completion to its request. The
 * clients of farm-get and herd share it.
 */
import { type CompletionQueue, Completions } from 'rdma-rpc/verbs';

/** Number of unsuccessful polls before the event loop may run. */
const pollsPerTurn = 200;

export class Pump {
  readonly #cq: CompletionQueue;
  readonly #done = new Completions(64);
  readonly #take: (done: Completions, i: number) => void;
  /** Runs between polls, for work that depends on time. */
  readonly #idle: () => void;
  #waiting = 0;
  #runs = false;

  constructor(
    cq: CompletionQueue,
    take: (done: Completions, i: number) => void,
    idle = (): void => undefined,
  ) {
    this.#cq = cq;
    this.#take = take;
    this.#idle = idle;
  }

  /** Records that one more request is in flight. */
  begin(): void {
    ++this.#waiting;
    if (!this.#runs) void this.#run();
  }
  end(): void {
    --this.#waiting;
  }

  async #run(): Promise<void> {
    this.#runs = true;
    let vain = 0;
    while (this.#waiting > 0 && !this.#cq.closed) {
      const count = this.#cq.poll(this.#done);
      for (let i = 0; i < count; ++i) this.#take(this.#done, i);
      vain = count > 0 ? 0 : vain + 1;
      // The promises that were resolved continue first, and then the other work on this thread.
      if (count > 0) await Promise.resolve();
      else if (vain % pollsPerTurn === 0) await new Promise((resolve) => setImmediate(resolve));
      if (count === 0) this.#idle();
    }
    this.#runs = false;
  }
}
