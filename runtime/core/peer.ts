/**
 * The other side of a connection: the facts that were verified about the peer and, separate from them, the
 * peer's own unverified claims. A PeerInfo is created once per session and passed to handlers as
 * `context.peer`. An adapter creates it from the information of the adapter's server.
 */
import { X509Certificate } from 'node:crypto';

/**
 * The other side of a connection, the same object for all its calls. The text form shows address and claims.
 */
export interface PeerInfo {
  /** The address from which the peer connected: `host:port`, or the address of the unix socket. */
  readonly address: string;
  /**
   * The verified identity of the peer. It is the result of the server's `authenticate`. Without such a
   * result, it is the URI of the peer's certificate (such as a SPIFFE id), or else `dns:NAME`, `subject:CN=…`
   * or `ip:ADDRESS`. On unix sockets it has the form `uid:1000`. It is undefined when nothing was verified.
   */
  readonly identity: string | undefined;
  /** The peer's claims about itself, which are not checked. */
  readonly claims: string;
  /**
   * User id of the process at the other end of a unix socket, at the time when it connected; `gid` is its
   * primary group, and `pid` its process id. It is undefined when the kernel cannot report them.
   */
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  readonly pid: number | undefined;
  /** The trusted certificate whose private key the peer has proved to own. */
  readonly certificate: X509Certificate | undefined;
}

/** The facts that were verified about a peer before it sent anything. */
export type Verified = Partial<Pick<PeerInfo, 'identity' | 'uid' | 'gid' | 'pid'>> & {
  /** The peer's certificate in DER, as it was received. */
  readonly certificate?: Uint8Array;
  /** The reason why the peer may have no session, for the log. */
  readonly refused?: string;
  /** This is true when this side refuses the peer only because it lacks the means to check the peer. */
  readonly unchecked?: boolean;
  /**
   * The kind of the peer's sideband connection, if no third party can read or change its content. It is
   * absent for plain TCP.
   */
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

  /** The certificate is parsed on first use, because parsing takes a while and few applications need it. */
  get certificate(): X509Certificate | undefined {
    const { certificate } = this.#verified;
    if (certificate !== undefined) this.#certificate ??= new X509Certificate(certificate);
    return this.#certificate;
  }

  /** Whether no third party can read or change the handshake. */
  get isPrivate(): boolean {
    return this.#verified.transport !== undefined;
  }

  /** The reason why the peer may have no session, for the log. */
  get refused(): string | undefined {
    return this.#verified.refused;
  }

  /** This is true when this side refuses the peer only because it lacks the means to check the peer. */
  get unchecked(): boolean {
    return this.#verified.unchecked === true;
  }

  /** The protection of the peer's identity that its sessions report. */
  get security(): 'none' | 'peer' {
    return this.isPrivate && this.identity !== undefined ? 'peer' : 'none';
  }

  /** Returns a copy of this peer with the identity that the server's `authenticate` has returned. */
  known(identity: string): KnownPeer {
    return new KnownPeer(this.address, this.claims, { ...this.#verified, identity });
  }

  toString(): string {
    return this.claims === '' ? this.address : `${this.address} (${this.claims})`;
  }
}
