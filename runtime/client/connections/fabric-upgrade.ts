/**
 * Looks for a better fabric. Without these attempts, a connection would stay on a less preferred fabric after
 * a device or shared memory has become available. Therefore the better fabrics are tried periodically. Calls
 * use the old connection until a better fabric connects. One address of a channel owns this object and uses
 * it on its JS thread.
 */
import type { FabricName } from '../../fabrics.ts';

/**
 * Tries only these fabrics. Resolves with true when a new connection over one of them has replaced the
 * current connection.
 */
export type TryFabrics = (fabrics: readonly FabricName[], abandon: AbortController) => Promise<boolean>;

export class FabricUpgrade {
  readonly #everyMs: number;
  readonly #tryFabrics: TryFabrics;
  #timer: NodeJS.Timeout | undefined;
  #abandon: AbortController | undefined;
  #attempt: Promise<void> | undefined;

  /** `everyMs` is the time in ms between two attempts. With 0, no attempts are made. */
  constructor(everyMs: number, tryFabrics: TryFabrics) {
    this.#everyMs = everyMs;
    this.#tryFabrics = tryFabrics;
  }

  /** Begins to look for fabrics that precede `fabric` in `order`, until `stop()`. */
  watch(fabric: FabricName, order: readonly FabricName[]): void {
    clearTimeout(this.#timer);
    const better = order.slice(0, Math.max(0, order.indexOf(fabric)));
    if (this.#everyMs === 0 || better.length === 0) return;
    this.#timer = setTimeout(() => {
      this.#attempt = this.#look(fabric, better);
    }, this.#everyMs);
    this.#timer.unref();
  }

  /** Stops the search. An attempt in progress is aborted with this reason. */
  stop(reason: string): void {
    clearTimeout(this.#timer);
    const abandon = this.#abandon;
    this.#abandon = undefined;
    abandon?.abort(new Error(reason));
  }

  /** Resolves when the attempt in progress has ended. */
  async ended(): Promise<void> {
    await this.#attempt;
  }

  async #look(fabric: FabricName, better: readonly FabricName[]): Promise<void> {
    const abandon = new AbortController();
    this.#abandon = abandon;
    // Errors do not matter, because the calls have a connection.
    const found = await this.#tryFabrics(better, abandon).catch(() => false);
    // After `stop()`, `#abandon` has another value.
    if (this.#abandon !== abandon) return;
    this.#abandon = undefined;
    if (!found) this.watch(fabric, [...better, fabric]);
  }
}
