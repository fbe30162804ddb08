/**
 * A session that the server creates speculatively while it waits for the client of a handshake. The session
 * is then ready when the client asks for it. The server does this only while no other handshake is in
 * progress. Otherwise the server would delay other work, and many clients that send only a hello would occupy
 * sessions. server-handshake.ts uses this file.
 */
import { type FabricName, fabricRow } from '../../fabrics.ts';
import { discardSession, isAlone, type LocalSide, type Prepared } from './session-setup.ts';

export class SpeculativeSession {
  #made: { readonly fabric: string; readonly prepared: Prepared } | undefined;

  /** Creates the session. If `prepare` throws, no session is kept, and a later attempt reports the error. */
  make(side: LocalSide, fabric: FabricName | undefined, prepare: (fabric: FabricName) => Prepared): void {
    // This is done only for fabrics within the host. Other fabrics may have to open a device first, and over
    // a network the creation of the session is a small part of the time.
    if (fabric === undefined || fabricRow(fabric).reach !== 'host' || isAlone(side, fabric)) return;
    try {
      this.#made = { fabric, prepared: prepare(fabric) };
    } catch {}
  }

  /** Returns the session if it was created for this fabric. A second call returns undefined. */
  take(fabric: FabricName): Prepared | undefined {
    const made = this.#made;
    if (made?.fabric !== fabric) return undefined;
    this.#made = undefined;
    return made.prepared;
  }

  /** Discards the session if it was not taken. */
  drop(): void {
    if (this.#made !== undefined) discardSession(this.#made.prepared, 'it was not needed');
    this.#made = undefined;
  }
}
