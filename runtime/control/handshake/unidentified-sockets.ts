/**
 * The connections of a listener whose first frame has not arrived yet. The listener passes its connections on
 * to other threads. A link reads each connection, as in a server, until the first bytes show its kind. A
 * connection of a session is handed over to native code. A connection that begins with TLS completes the TLS
 * handshake here. A connection that begins with a frame is passed on unread. Each connection has a time
 * limit. The number of silent connections is limited (silent.ts), and so is the number of TLS handshakes in
 * progress (handshake-limiter.ts). TLS with addresses whose TLS handshakes have failed begins at a limited
 * rate (suspect-tls.ts). This file runs on the main thread of a worker group.
 */
import type { Socket } from 'node:net';
import { Status } from '../../core/errors/status.ts';
import {
  handshakeGraceMs,
  handshakeQueueFactor,
  handshakeStallMs,
  handshakes,
  handshakeTimeoutMs,
} from '../../limits.ts';
import { Link } from '../link.ts';
import { verdictOf } from '../tls/certificate.ts';
import { handoffOf, type TlsAcceptor } from '../tls/tls-server.ts';
import { HandshakeLimiter } from './handshake-limiter.ts';
import { handshakeFailed } from './refusal.ts';
import { Silent } from './silent.ts';
import { SuspectTls } from './suspect-tls.ts';
import { Suspects } from './suspects.ts';

interface Unidentified {
  readonly timer: NodeJS.Timeout;
  /** Network address of the client, or '' for a unix socket. */
  readonly address: string;
  /** True when the TLS handshake of the connection has begun. */
  secures: boolean;
}

export class UnidentifiedSockets {
  readonly #then: (socket: Socket, peer: string) => void;
  readonly #tls: TlsAcceptor | undefined;
  readonly #log: (line: string, from: string, refused: boolean) => void;
  readonly #open = new Map<Link, Unidentified>();
  readonly #silent = new Silent<Link>(handshakes.default, (link) =>
    refuse(link, `more than ${handshakes.default} connections have sent nothing yet`, handshakeGraceMs),
  );
  /** Connections whose TLS handshake has begun or waits to begin. */
  readonly #securing = new HandshakeLimiter<Link>(handshakes.default, {
    awaitedMs: (link) => link.awaitedMs,
    steps: (link) => link.steps,
    rank: (link) => this.#rank(link),
    evict: (link) => link.close(`nothing was received for ${handshakeStallMs} ms while others wait for TLS`),
  });
  readonly #suspects = new Suspects();
  readonly #suspectTls = new SuspectTls<Link>(handshakes.default * handshakeQueueFactor, {
    rank: (link) => this.#rank(link),
    evict: (link) => link.close('too many connections wait for TLS'),
  });

  /**
   * `then` receives each sideband connection before anything was read from it. It receives a TLS connection
   * when the TLS handshake is complete. With `tls`, TCP connections must use TLS. `log` is called for each
   * connection that ends before it reaches `then`; it gets a line, the address, and whether the connection
   * was refused.
   */
  constructor(
    then: (socket: Socket, peer: string) => void,
    tls?: TlsAcceptor,
    log: (line: string, from: string, refused: boolean) => void = () => undefined,
  ) {
    this.#tls = tls;
    this.#then = then;
    this.#log = log;
  }

  /** Number of unidentified connections. */
  get count(): number {
    return this.#open.size;
  }

  /** Adds a connection. `peer` names its origin, for logs. */
  add(socket: Socket, peer: string): void {
    // The address is read now, because a closed socket no longer has it.
    const { remoteAddress: address = '' } = socket;
    const begin = async (): Promise<void> => {
      await this.#securing.enter(link);
      one.secures = true;
    };
    const turn = (): Promise<void> | undefined => {
      this.#silent.delete(link);
      return this.#suspectTls.before(link, begin);
    };
    const link: Link = new Link(socket, {
      ...handoffOf(socket, this.#tls, turn),
      passOn: (duplex) => {
        // The worker will refuse a client without a trusted certificate.
        if (verdictOf(duplex)?.refused !== undefined) this.#suspects.failed(address);
        else if (one.secures) this.#suspects.succeeded(address);
        this.#leave(link);
        this.#then(duplex as Socket, peer);
      },
    });
    const lateMs = handshakeTimeoutMs.default;
    const late = (): void => refuse(link, `no handshake within ${lateMs} ms`);
    const one: Unidentified = { timer: setTimeout(late, lateMs).unref(), address, secures: false };
    this.#open.set(link, one);
    this.#silent.add(link);
    link.onEnd = (reason) => {
      this.#leave(link);
      if (one.secures) this.#suspects.failed(address);
      if (!link.handedOver) {
        const refused = link.refusalCode !== undefined;
        this.#log(handshakeFailed(peer, reason), address, refused);
      }
    };
  }

  /** Closes all unidentified connections when the group ends. */
  close(): void {
    for (const link of [...this.#open.keys()]) {
      link.onEnd = undefined;
      this.#leave(link);
      link.duplex.destroy();
    }
  }

  #rank(link: Link): number {
    return this.#suspects.rank(this.#open.get(link)?.address ?? '');
  }

  #leave(link: Link): void {
    clearTimeout(this.#open.get(link)?.timer);
    this.#open.delete(link);
    this.#silent.delete(link);
    this.#suspectTls.leave(link);
    this.#securing.leave(link);
  }
}

/**
 * Refuses a connection as a server does. `retryMs` tells the client when to retry after a refusal because of
 * overload.
 */
function refuse(link: Link, message: string, retryMs?: number): void {
  const when = retryMs === undefined ? {} : { retryMs };
  link.close(message, { type: 'refusal', code: Status.RESOURCE_EXHAUSTED, message, ...when });
}
