/**
 * The asynchronous handlers that a server runs, over all of its sessions. Past the limit requests are turned
 * away while they cost nothing yet. Synchronous handlers are done before the next request is looked at, so
 * they do not count.
 */
export class Load {
  readonly #max: number;
  running = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get full(): boolean {
    return this.running >= this.#max;
  }

  /** For the error. */
  get text(): string {
    return `${this.#max} handlers are running already (option handlersMax of the server)`;
  }
}
