/**
 * Who is at the other end of a connection: what was verified, and apart from that what it says of itself.
 * Made once per session, and given to handlers as `context.peer`; adapters make one of what their server
 * knows.
 */
import { X509Certificate } from 'node:crypto';

/**
 * The other end of a connection, the same object for all calls of it. As text: address and claims, for
 * people.
 */
export interface PeerInfo {
  /** Where its connection comes from: `host:port`, or the address of the unix socket that it came by. */
  readonly address: string;
  /**
   * Who it is, as far as that was verified: what `authenticate` of the server has said, else the URI of its
   * certificate (such as a SPIFFE id), else `dns:NAME` or `subject:CN=…` or `ip:ADDRESS`; `uid:1000` on unix
   * sockets. Undefined: nobody knows.
   */
  readonly identity: string | undefined;
  /** What it says of itself: unchecked. */
  readonly claims: string;
  /**
   * Of the process at the other end of a unix socket, when it connected; undefined when the kernel cannot
   * tell it here.
   */
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  readonly pid: number | undefined;
  /** The certificate that it has proved to own, and that one of the trusted authorities has signed. */
  readonly certificate: X509Certificate | undefined;
}

/** What was found out about a peer before it said anything. */
export type Verified = Partial<Pick<PeerInfo, 'identity' | 'uid' | 'gid' | 'pid'>> & {
  /** In DER, as it has come. */
  readonly certificate?: Uint8Array;
  /** Why it may have no session, for the log. */
  readonly refused?: string;
  /** That is not its fault: this side has nothing to check it with. */
  readonly unchecked?: boolean;
  /** What nobody else reads or changes: how its sideband connection comes. Without: plain TCP. */
  readonly transport?: 'tls' | 'unix' | 'process';
};

export class KnownPeer implements PeerInfo {
  readonly address: string;
  readonly identity: string | undefined;
  readonly claims: string;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  readonly pid: number | undefined;
  readonly #verified: Verified;
  #certificate: X509Certificate | undefined;

  constructor(address: string, claims = '', verified: Verified = {}) {
    this.address = address;
    this.identity = verified.identity;
    this.claims = claims;
    this.uid = verified.uid;
    this.gid = verified.gid;
    this.pid = verified.pid;
    this.#verified = verified;
  }

  /** Read when it is asked for: few want it, and it takes a while. */
  get certificate(): X509Certificate | undefined {
    const { certificate } = this.#verified;
    if (certificate !== undefined) this.#certificate ??= new X509Certificate(certificate);
    return this.#certificate;
  }

  /** Nobody but the two sides can read or change what the handshake says. */
  get isPrivate(): boolean {
    return this.#verified.transport !== undefined;
  }

  /** Why it may have no session, for the log. */
  get refused(): string | undefined {
    return this.#verified.refused;
  }

  /** That is not its fault: this side has nothing to check it with. */
  get unchecked(): boolean {
    return this.#verified.unchecked === true;
  }

  /** What is promised of who is there, as sessions tell. */
  get security(): 'none' | 'peer' {
    return this.isPrivate && this.identity !== undefined ? 'peer' : 'none';
  }

  /** The same, as somebody who was told so has said. */
  known(identity: string): KnownPeer {
    return new KnownPeer(this.address, this.claims, { ...this.#verified, identity });
  }

  toString(): string {
    return this.claims === '' ? this.address : `${this.address} (${this.claims})`;
  }
}
