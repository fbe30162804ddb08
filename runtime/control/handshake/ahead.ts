/**
 * A session that a server makes while the client of a handshake is at work, so that it is there when the
 * client asks for it. Only when no other handshake is under way: else there is enough to do meanwhile, and a
 * crowd that only says hello would hold sessions. Used by server-handshake.ts.
 */
import { type FabricName, fabricRow } from '../../fabrics.ts';
import { discardSession, isAlone, type LocalSide, type Prepared } from './session-setup.ts';

export class Ahead {
  #made: { readonly fabric: string; readonly prepared: Prepared } | undefined;

  /** `prepare` may throw: then there is none, and whoever asks for one learns why. */
  make(side: LocalSide, fabric: FabricName | undefined, prepare: (fabric: FabricName) => Prepared): void {
    // For others a device may have to be opened first, and over a network it is not this that takes long.
    if (fabric === undefined || fabricRow(fabric).reach !== 'host' || isAlone(side, fabric)) return;
    try {
      this.#made = { fabric, prepared: prepare(fabric) };
    } catch {}
  }

  /** The one that was made for this fabric, once. */
  take(fabric: FabricName): Prepared | undefined {
    const made = this.#made;
    if (made?.fabric !== fabric) return undefined;
    this.#made = undefined;
    return made.prepared;
  }

  /** Nobody will take it any more. */
  drop(): void {
    if (this.#made !== undefined) discardSession(this.#made.prepared, 'it was made in vain');
    this.#made = undefined;
  }
}
