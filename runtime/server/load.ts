/**
 * The asynchronous handlers that a server runs, over all of its sessions. Past the limit requests are turned
 * away while they cost nothing yet. Synchronous handlers are done before the next request is looked at, so
 * they do not count.
 */
export class Load {
  readonly #max: number;
  readonly #why: string;
  running = 0;

  /** `why`: what there is too much of, for the error. */
  constructor(max: number, why = 'handlers are running already (option handlersMax of the server)') {
    this.#max = max;
    this.#why = why;
  }

  get full(): boolean {
    return this.running >= this.#max;
  }

  /** For the error. */
  get text(): string {
    return `${this.#max} ${this.#why}`;
  }
}
