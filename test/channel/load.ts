/** Makes calls one after another while a server ends, and records which of them failed. */

/** Number of calls that are under way at any time. */
const together = 8;

interface Made {
  readonly order: number;
  readonly failed: boolean;
}

/** Makes calls until `end`. `order` counts beginnings and failures together. */
export class SteadyLoad {
  #over = false;
  firstFailure = Number.POSITIVE_INFINITY;
  readonly made: Made[] = [];
  #order = 0;
  readonly #call: () => Promise<unknown>;
  readonly #loops: Promise<void>[];

  constructor(call: () => Promise<unknown>) {
    this.#call = call;
    this.#loops = Array.from({ length: together }, () => this.#loop());
  }

  /** Returns the calls that began after the first failure and failed. */
  get late(): readonly Made[] {
    return this.made.filter(({ order, failed }) => failed && order > this.firstFailure);
  }

  async #loop(): Promise<void> {
    while (!this.#over) {
      const order = ++this.#order;
      let failed = false;
      await this.#call().catch(() => {
        failed = true;
        this.firstFailure = Math.min(this.firstFailure, ++this.#order);
      });
      this.made.push({ order, failed });
    }
  }

  async end(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#loops);
  }
}
