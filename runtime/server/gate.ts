/**
 * Who may have a session of a server: what TLS has found, `authenticate`, `allow`, the limit of its address
 * and `quotas`, in that order, before a queue pair is made. Asked for each connection when its hello has
 * come.
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
import type { Arrival } from './arrival.ts';
import type { PeerCounts } from './peer-counts.ts';
import { Accounts } from './quotas.ts';
import type { ResolvedServerOptions, ServerOptions } from './server-options.ts';

export class Gate {
  readonly #allowed: Allowed;
  readonly #authenticate: Authenticate | undefined;
  readonly #accounts: Accounts | undefined;
  readonly #required: SecurityLevel;
  readonly #peers: PeerCounts;
  readonly #handshakes: Handshakes;

  /** Throws for options that would let nobody in, or cannot be meant. */
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

  /** Throws or rejects to turn it away. Undefined: it may go on. */
  admit(arrival: Arrival, link: Link, hello: Hello): Promise<void> | undefined {
    const peer = new KnownPeer(arrival.address, hello.identity, verifiedOf(link.duplex));
    arrival.peer = peer;
    checkVerified(peer);
    if (this.#authenticate === undefined) {
      this.#enter(arrival, link);
      return undefined;
    }
    // Looked at before the application is asked for nothing.
    this.#checkRoom(peerAddress(link.duplex));
    const authenticate = this.#authenticate;
    const asked = inRoot(() => authenticated(authenticate, peer, hello));
    return this.#handshakes.whileAsked(link, asked).then((known) => {
      arrival.peer = known;
      this.#enter(arrival, link);
    });
  }

  #enter(arrival: Arrival, link: Link): void {
    const { duplex } = link;
    this.#allowed.check(arrival.peer);
    // Whether the queue pair is bound is known when both sides have proved theirs.
    if (this.#required === 'peer') checkLevel('server', this.#required, arrival.peer.security);
    const address = peerAddress(duplex);
    this.#checkRoom(address);
    const full = this.#peers.enter(address, duplex);
    if (full !== undefined) throw full;
    arrival.account = this.#accounts?.enter(arrival.peer, duplex);
    this.#handshakes.admit(link);
  }

  /** Throws when its address has no room for another one, and none that a silent client keeps. */
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
