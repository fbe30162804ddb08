/**
 * Counts the asynchronous handlers that a server runs in all its sessions. At the limit, further requests are
 * rejected before they cost anything. Synchronous handlers finish before the next request is read, so they do
 * not count.
 */
export class Load {
  readonly #max: number;
  readonly #why: string;
  running = 0;

  /** `why` is the part of the error text that names the limit. */
  constructor(max: number, why = 'handlers are running already (option handlersMax of the server)') {
    this.#max = max;
    this.#why = why;
  }

  get full(): boolean {
    return this.running >= this.#max;
  }

  /** The error text when the limit is reached. */
  get text(): string {
    return `${this.#max} ${this.#why}`;
  }
}
