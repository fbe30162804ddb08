/**
 * A connection attempt of a client: its identity, its quotas, and its outcome, which is reported once.
 * Created by a server for each connection; on its JS thread.
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

/** Reported when a client has got a session. */
export interface AcceptedSession extends Pick<SessionSummary, 'fabric' | 'security'> {
  readonly accepted: true;
  /** The peer; `peer.identity` is its verified identity. */
  readonly peer: PeerInfo;
}

/** Reported when a connection has got no session. */
export interface RefusedSession {
  readonly accepted: false;
  /** The peer as far as it was known by then; at least its address. */
  readonly peer: PeerInfo;
  readonly code: StatusCode;
  /** The reason as in the server's log; the client may have got a shorter one. */
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
  /** The connection on the fabric that was tried last. */
  connection: Tried | undefined;
  readonly #tell: OnSession | undefined;

  constructor(address: string, tell: OnSession | undefined) {
    this.address = address;
    this.peer = new KnownPeer(address);
    this.#tell = tell;
  }

  /** For the log: the address and the verified identity, if any. */
  get name(): string {
    const { identity } = this.peer;
    return identity === undefined ? this.address : `${this.address} (${identity})`;
  }

  /** Limit of arena memory for large requests; undefined for no limit. */
  get arenaBytesMax(): number | undefined {
    return this.account?.limits.arenaBytesMax;
  }

  /** Reports that the client has a session, or had one. */
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
