/**
 * The contexts that a server keeps open for future sessions, so that the first client finds its fabric open.
 * A context whose device is removed is released at once, because the system waits for the release. When a
 * session has found the device again, the server keeps the device's context open again. A server owns this
 * object and uses it on its JS thread.
 */
import { acquireContext, releaseContext } from '../boundary/contexts.ts';
import type { FabricContext } from '../boundary/fabric-context.ts';
import { choiceOf, isAlone, type LocalSide } from '../control/handshake/session-setup.ts';
import { opensInListen } from '../fabrics.ts';

export class KeptContexts {
  /** Returns the fabrics that the server currently offers. */
  readonly #side: () => LocalSide;
  /**
   * True when the fabrics were chosen automatically. Then only the first fabric and the cheap fabrics are
   * opened.
   */
  readonly #isAuto: boolean;
  readonly #contexts: FabricContext[] = [];
  /** True when the device of a context was removed. */
  #lostDevice = false;

  constructor(side: () => LocalSide, isAuto: boolean) {
    this.#side = side;
    this.#isAuto = isAuto;
  }

  /** Opens the contexts. Throws an error that says why no fabric can be opened. */
  open(): void {
    if (this.#contexts.length > 0) return;
    const side = this.#side();
    const errors: unknown[] = [];
    for (const fabric of side.fabrics) {
      if (this.#isAuto && !opensInListen(fabric, this.#contexts.length === 0)) continue;
      try {
        this.#keep(acquireContext(choiceOf(side, fabric)));
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0 && this.#contexts.length === 0) throw errors[0];
    // On these fabrics each session opens a context of its own, so the contexts are released.
    const kept = this.#contexts.splice(0);
    this.#release(kept.filter(({ fabric }) => isAlone(side, fabric)));
    this.#contexts.push(...kept.filter(({ fabric }) => !isAlone(side, fabric)));
  }

  /** Opens the context of a removed device again. Runs when a session has found the device. */
  reopen(): void {
    if (!this.#lostDevice) return;
    this.#lostDevice = false;
    const kept = this.#contexts.splice(0);
    this.open();
    this.#release(kept);
  }

  close(): void {
    this.#release(this.#contexts.splice(0));
  }

  readonly #onDeviceGone = (): void => {
    this.#lostDevice = true;
    const lost = this.#contexts.filter(({ deviceGone }) => deviceGone);
    this.#contexts.splice(0, Infinity, ...this.#contexts.filter(({ deviceGone }) => !deviceGone));
    this.#release(lost);
  };

  #keep(context: FabricContext): void {
    this.#contexts.push(context);
    context.onDeviceGone(this.#onDeviceGone);
  }

  #release(contexts: readonly FabricContext[]): void {
    for (const context of contexts) {
      context.offDeviceGone(this.#onDeviceGone);
      releaseContext(context);
    }
  }
}
