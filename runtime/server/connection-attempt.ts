/**
 * A connection attempt of a client. It has the client's identity and quotas, and reports the outcome of the
 * attempt once. A server creates one for each connection, on its JS thread.
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

/** The server's report about a client that has got a session. */
export interface AcceptedSession extends Pick<SessionSummary, 'fabric' | 'security'> {
  readonly accepted: true;
  /** The peer. `peer.identity` is the verified identity of the peer. */
  readonly peer: PeerInfo;
}

/** The server's report about a connection that has got no session. */
export interface RefusedSession {
  readonly accepted: false;
  /**
   * The facts about the peer that were known at the time of the refusal. It contains at least the address.
   */
  readonly peer: PeerInfo;
  readonly code: StatusCode;
  /** The reason as in the server's log. The client may have got a shorter reason. */
  readonly reason: string;
}

/** Option `onSession`. */
export type OnSession = (session: AcceptedSession | RefusedSession) => void;

/** The session that was created for the attempt. */
interface Tried {
  readonly prepared: Prepared;
  /** True after the first request. */
  readonly used: boolean;
}

export class ConnectionAttempt {
  /** Address of the client. */
  readonly address: string;
  peer: KnownPeer;
  account: Account | undefined;
  /** The connection over the fabric that was tried last. */
  connection: Tried | undefined;
  readonly #tell: OnSession | undefined;

  constructor(address: string, tell: OnSession | undefined) {
    this.address = address;
    this.peer = new KnownPeer(address);
    this.#tell = tell;
  }

  /** The name of the client for the log: the address and, if known, the verified identity. */
  get name(): string {
    const { identity } = this.peer;
    return identity === undefined ? this.address : `${this.address} (${identity})`;
  }

  /** Limit in bytes of the arena memory for large requests. It is undefined when there is no limit. */
  get arenaBytesMax(): number | undefined {
    return this.account?.limits.arenaBytesMax;
  }

  /** Reports that the client has got a session, which may already have ended. */
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
