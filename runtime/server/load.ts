/**
 * Counts the asynchronous handlers that a server runs in all of its sessions. Beyond the limit, requests are
 * rejected before they have cost anything. Synchronous handlers finish before the next request is read, so
 * they do not count.
 */
export class Load {
  readonly #max: number;
  readonly #why: string;
  running = 0;

  /** `why` names the exceeded limit in the error. */
  constructor(max: number, why = 'handlers are running already (option handlersMax of the server)') {
    this.#max = max;
    this.#why = why;
  }

  get full(): boolean {
    return this.running >= this.#max;
  }

  /** The error text. */
  get text(): string {
    return `${this.#max} ${this.#why}`;
  }
}
