/**
 * A connection that wants a session: who it is, what it may use, and what becomes of it, which is told once.
 * Made by a server for each connection; on its JS thread.
 */

import type { Prepared } from '../control/handshake/session-setup.ts';
import { levelOf } from '../control/security-level.ts';
import type { SessionSummary } from '../control/session-summary.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status, type StatusCode } from '../core/errors/status.ts';
import { guardedInRoot } from '../core/foreign.ts';
import { KnownPeer, type PeerInfo } from '../core/peer.ts';
import { reasonOf } from './allowed.ts';
import type { Account } from './quotas.ts';

/** A client has a session. */
export interface AcceptedSession extends Pick<SessionSummary, 'fabric' | 'security'> {
  readonly accepted: true;
  /** Who it is; `peer.identity` is what was verified. */
  readonly peer: PeerInfo;
}

/** A connection has come to nothing. */
export interface RefusedSession {
  readonly accepted: false;
  /** What was known of it by then: its address at least. */
  readonly peer: PeerInfo;
  readonly code: StatusCode;
  /** As the log of the server has it; the client may have been told less. */
  readonly reason: string;
}

/** Option `onSession`. */
export type OnSession = (session: AcceptedSession | RefusedSession) => void;

/** A session that has been made for it. */
interface Tried {
  readonly prepared: Prepared;
  /** There has been a request. */
  readonly used: boolean;
}

export class Arrival {
  /** Where it comes from. */
  readonly address: string;
  peer: KnownPeer;
  account: Account | undefined;
  /** Of the fabric that was tried last. */
  connection: Tried | undefined;
  readonly #tell: OnSession | undefined;

  constructor(address: string, tell: OnSession | undefined) {
    this.address = address;
    this.peer = new KnownPeer(address);
    this.#tell = tell;
  }

  /** For the log: where it comes from, and who it is as far as that was verified. */
  get name(): string {
    const { identity } = this.peer;
    return identity === undefined ? this.address : `${this.address} (${identity})`;
  }

  /** Arena memory that its large requests may hold; undefined: no such limit. */
  get arenaBytesMax(): number | undefined {
    return this.account?.limits.arenaBytesMax;
  }

  /** It has a session, or has had one. */
  accepted(): void {
    const { peer, connection } = this;
    if (connection === undefined) return;
    const { context, protection } = connection.prepared;
    const security = levelOf(peer.security, protection);
    this.#say({ accepted: true, peer, fabric: context.fabric, security });
  }

  refused(error: unknown): void {
    const known = RpcError.from(error, Status.UNAVAILABLE);
    this.#say({ accepted: false, peer: this.peer, code: known.code, reason: reasonOf(known) });
  }

  #say(session: AcceptedSession | RefusedSession): void {
    const tell = this.#tell;
    if (tell !== undefined) guardedInRoot('the function `onSession`', () => tell(session));
  }
}
