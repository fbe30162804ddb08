/**
 * Connections whose first frame has not come yet, at a listener that passes them on to other threads. Each is
 * read by a link, as a server's are, until its first bytes say what it is: one of a session is handed over to
 * native code, one that begins with TLS goes on within that, and one that begins with a frame is passed on as
 * it came. Each has a time limit. Limited numbers may be silent (silent.ts) and in the middle of TLS
 * (places.ts). Used on the main thread of a worker group.
 */
import type { Socket } from 'node:net';
import { Status } from '../../core/errors/status.ts';
import { handshakeGraceMs, handshakeStallMs, handshakes, handshakeTimeoutMs } from '../../limits.ts';
import { Link } from '../link.ts';
import { handoffOf, type TlsAcceptor } from '../tls/tls-server.ts';
import { Places } from './places.ts';
import { handshakeFailed } from './refusal.ts';
import { Silent } from './silent.ts';

export class UnidentifiedSockets {
  readonly #then: (socket: Socket, peer: string) => void;
  readonly #tls: TlsAcceptor | undefined;
  readonly #log: (line: string, from: string, refused: boolean) => void;
  readonly #open = new Map<Link, NodeJS.Timeout>();
  readonly #silent = new Silent<Link>(handshakes.default, (link) =>
    refuse(link, `more than ${handshakes.default} connections have sent nothing yet`, handshakeGraceMs),
  );
  /** Those with which TLS has begun or is to begin. */
  readonly #securing = new Places<Link>(handshakes.default, {
    awaitedMs: (link) => link.awaitedMs,
    steps: (link) => link.steps,
    rank: () => 0,
    sendAway: (link) => link.close(`nothing came for ${handshakeStallMs} ms, and others wait for TLS`),
  });

  /**
   * `then`: gets each sideband connection, with nothing read from it; one of TLS when keys are agreed. `tls`:
   * TCP connections must have it. `log`: gets a line of each that ends before, the address that it comes
   * from, and whether it was refused.
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

  /** Connections that are waited for. */
  get count(): number {
    return this.#open.size;
  }

  /** `peer`: where the connection comes from, for people. */
  add(socket: Socket, peer: string): void {
    // A closed socket does not know it any more.
    const { remoteAddress = '' } = socket;
    const turn = (): Promise<void> | undefined => {
      this.#silent.delete(link);
      return this.#securing.enter(link);
    };
    const link: Link = new Link(socket, {
      ...handoffOf(socket, this.#tls, turn),
      passOn: (duplex) => {
        this.#leave(link);
        this.#then(duplex as Socket, peer);
      },
    });
    const lateMs = handshakeTimeoutMs.default;
    const late = (): void => refuse(link, `no handshake within ${lateMs} ms`);
    this.#open.set(link, setTimeout(late, lateMs).unref());
    this.#silent.add(link);
    link.onEnd = (reason) => {
      this.#leave(link);
      if (!link.handedOver) {
        const refused = link.refusalCode !== undefined;
        this.#log(handshakeFailed(peer, reason), remoteAddress, refused);
      }
    };
  }

  /** The group ends: no connection is waited for any more. */
  close(): void {
    for (const link of [...this.#open.keys()]) {
      link.onEnd = undefined;
      this.#leave(link);
      link.duplex.destroy();
    }
  }

  #leave(link: Link): void {
    clearTimeout(this.#open.get(link));
    this.#open.delete(link);
    this.#silent.delete(link);
    this.#securing.leave(link);
  }
}

/** As a server does it. `retryMs`: when to come again, for one of a crowd. */
function refuse(link: Link, message: string, retryMs?: number): void {
  const when = retryMs === undefined ? {} : { retryMs };
  link.close(message, { type: 'refusal', code: Status.RESOURCE_EXHAUSTED, message, ...when });
}
