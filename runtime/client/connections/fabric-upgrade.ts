/**
 * Looking for a better fabric: a connection over one that is not the first choice stays there, though a
 * device or a shared memory may have come since. Now and then the fabrics before it are tried; calls go on
 * over the old connection until one of them connects. Owned by one address of a channel, on its JS thread.
 */
import type { FabricName } from '../../fabrics.ts';

/**
 * Tries these fabrics only. True: one has connected, and has taken the place of the connection that is
 * watched.
 */
export type TryFabrics = (fabrics: readonly FabricName[], abandon: AbortController) => Promise<boolean>;

export class FabricUpgrade {
  readonly #everyMs: number;
  readonly #tryFabrics: TryFabrics;
  #timer: NodeJS.Timeout | undefined;
  #abandon: AbortController | undefined;
  #attempt: Promise<void> | undefined;

  /** `everyMs`: between the end of one look and the next; 0: never. */
  constructor(everyMs: number, tryFabrics: TryFabrics) {
    this.#everyMs = everyMs;
    this.#tryFabrics = tryFabrics;
  }

  /** The connection goes over `fabric`; those before it in `order` are better. Until `stop()`. */
  watch(fabric: FabricName, order: readonly FabricName[]): void {
    clearTimeout(this.#timer);
    const better = order.slice(0, Math.max(0, order.indexOf(fabric)));
    if (this.#everyMs === 0 || better.length === 0) return;
    this.#timer = setTimeout(() => {
      this.#attempt = this.#look(fabric, better);
    }, this.#everyMs);
    this.#timer.unref();
  }

  /** No more looks. One that is under way is given up, with this reason. */
  stop(reason: string): void {
    clearTimeout(this.#timer);
    const abandon = this.#abandon;
    this.#abandon = undefined;
    abandon?.abort(new Error(reason));
  }

  /** A look that was under way is over. */
  async ended(): Promise<void> {
    await this.#attempt;
  }

  async #look(fabric: FabricName, better: readonly FabricName[]): Promise<void> {
    const abandon = new AbortController();
    this.#abandon = abandon;
    // What went wrong is of no consequence: calls have a connection.
    const found = await this.#tryFabrics(better, abandon).catch(() => false);
    // It has been stopped.
    if (this.#abandon !== abandon) return;
    this.#abandon = undefined;
    if (!found) this.watch(fabric, [...better, fabric]);
  }
}
