/**
 * Authenticates a client and decides whether the client may have a session. It checks the result of TLS,
 * `authenticate`, `allow`, the limit of the client's address and `quotas`, in that order, before a queue pair
 * is created. Runs for each connection when its hello has arrived.
 */

import type { Hello } from '../control/frames.ts';
import type { Handshakes } from '../control/handshake/handshakes.ts';
import type { Link } from '../control/link.ts';
import { verifiedOf } from '../control/peer-identity.ts';
import { checkLevel, type SecurityLevel } from '../control/security-level.ts';
import { peerAddress } from '../control/socket/address.ts';
import { KnownPeer } from '../core/peer.ts';
import { inRoot } from '../core/scopes.ts';
import { Allowed, type Authenticate, authenticated, checkVerified } from './allowed.ts';
import type { ConnectionAttempt } from './connection-attempt.ts';
import type { PeerCounts } from './peer-counts.ts';
import { Accounts } from './quotas.ts';
import type { ResolvedServerOptions, ServerOptions } from './server-options.ts';

export class Authentication {
  readonly #allowed: Allowed;
  readonly #authenticate: Authenticate | undefined;
  readonly #accounts: Accounts | undefined;
  readonly #required: SecurityLevel;
  readonly #peers: PeerCounts;
  readonly #handshakes: Handshakes;

  /** Throws for options that are invalid or that would admit no client. */
  constructor(
    given: ServerOptions | undefined,
    { allow, authenticate, quotas, security }: ResolvedServerOptions,
    peers: PeerCounts,
    handshakes: Handshakes,
  ) {
    this.#peers = peers;
    this.#handshakes = handshakes;
    this.#allowed = new Allowed(given?.allow, allow);
    this.#authenticate = authenticate;
    this.#accounts = quotas === undefined ? undefined : new Accounts(quotas);
    this.#required = security.require;
  }

  /** Throws or rejects to refuse the client. Returns undefined when the client is admitted at once. */
  admit(attempt: ConnectionAttempt, link: Link, hello: Hello): Promise<void> | undefined {
    const peer = new KnownPeer(attempt.address, hello.identity, verifiedOf(link.duplex));
    attempt.peer = peer;
    checkVerified(peer);
    if (this.#authenticate === undefined) {
      this.#enter(attempt, link);
      return undefined;
    }
    // The limit of the address is checked first, so that the application is not called for a connection that
    // is refused anyway.
    this.#checkRoom(peerAddress(link.duplex));
    const authenticate = this.#authenticate;
    const asked = inRoot(() => authenticated(authenticate, peer, hello));
    return this.#handshakes.whileAsked(link, asked).then((known) => {
      attempt.peer = known;
      this.#enter(attempt, link);
    });
  }

  #enter(attempt: ConnectionAttempt, link: Link): void {
    const { duplex } = link;
    this.#allowed.check(attempt.peer);
    // Levels above `peer` are checked later, when the protection of the queue pair is known.
    if (this.#required === 'peer') checkLevel('server', this.#required, attempt.peer.security);
    const address = peerAddress(duplex);
    this.#checkRoom(address);
    const full = this.#peers.enter(address, duplex);
    if (full !== undefined) throw full;
    attempt.account = this.#accounts?.enter(attempt.peer, duplex);
    this.#handshakes.admit(link);
  }

  /** Throws when the address has too many connections and no silent client of the address can be evicted. */
  #checkRoom(address: string): void {
    const full = this.#peers.full(address);
    if (full === undefined) return;
    const peers = this.#peers;
    const silent = this.#handshakes.evictSilent(
      (link, from) => from === address && peers.has(address, link.duplex),
    );
    if (silent === undefined) throw full;
    peers.leave(address, silent.duplex);
  }
}
