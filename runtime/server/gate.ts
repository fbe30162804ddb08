/**
 * Who may have a session of a server: what TLS has found, `authenticate`, `allow` and `quotas`, in that order, before a queue pair is made. Asked for each
 * connection when its hello has come.
 */
import type { Hello } from '../control/frames.ts';
import type { Link } from '../control/link.ts';
import { verifiedOf } from '../control/peer-identity.ts';
import { checkLevel, type SecurityLevel } from '../control/security-level.ts';
import { KnownPeer } from '../core/peer.ts';
import { Allowed, type Authenticate, authenticated, checkVerified } from './allowed.ts';
import type { Arrival } from './arrival.ts';
import { Accounts } from './quotas.ts';
import type { ResolvedServerOptions, ServerOptions } from './server-options.ts';

export class Gate {
  readonly #allowed: Allowed;
  readonly #authenticate: Authenticate | undefined;
  readonly #accounts: Accounts | undefined;
  readonly #required: SecurityLevel;

  /** Throws for options that would let nobody in, or cannot be meant. */
  constructor(
    given: ServerOptions | undefined,
    { allow, authenticate, quotas, security }: ResolvedServerOptions,
  ) {
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
    link.awaits = '`authenticate` of the server has not answered';
    return authenticated(this.#authenticate, peer, hello).then((known) => {
      link.awaits = undefined;
      arrival.peer = known;
      this.#enter(arrival, link);
    });
  }

  #enter(arrival: Arrival, { duplex }: Link): void {
    this.#allowed.check(arrival.peer);
    // Whether the queue pair is bound is known when both sides have proved theirs.
    if (this.#required === 'peer') checkLevel('server', this.#required, arrival.peer.security);
    arrival.account = this.#accounts?.enter(arrival.peer, duplex);
  }
}
