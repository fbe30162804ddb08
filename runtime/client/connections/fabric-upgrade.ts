/**
 * Looks for a better fabric. A connection over a less preferred fabric stays there, although a device or
 * shared memory may have become available. So the better fabrics are tried periodically; calls use the old
 * connection until one of them connects. Owned by one address of a channel, on its JS thread.
 */
import type { FabricName } from '../../fabrics.ts';

/**
 * Tries only these fabrics. Resolves with true when one has connected and has replaced the current
 * connection.
 */
export type TryFabrics = (fabrics: readonly FabricName[], abandon: AbortController) => Promise<boolean>;

export class FabricUpgrade {
  readonly #everyMs: number;
  readonly #tryFabrics: TryFabrics;
  #timer: NodeJS.Timeout | undefined;
  #abandon: AbortController | undefined;
  #attempt: Promise<void> | undefined;

  /** `everyMs` is the time between two attempts; 0 for never. */
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

  /** Stops; an attempt in progress is aborted with this reason. */
  stop(reason: string): void {
    clearTimeout(this.#timer);
    const abandon = this.#abandon;
    this.#abandon = undefined;
    abandon?.abort(new Error(reason));
  }

  /** An attempt in progress has ended. */
  async ended(): Promise<void> {
    await this.#attempt;
  }

  async #look(fabric: FabricName, better: readonly FabricName[]): Promise<void> {
    const abandon = new AbortController();
    this.#abandon = abandon;
    // Errors do not matter: calls have a connection.
    const found = await this.#tryFabrics(better, abandon).catch(() => false);
    // True after `stop()`.
    if (this.#abandon !== abandon) return;
    this.#abandon = undefined;
    if (!found) this.watch(fabric, [...better, fabric]);
  }
}
