/**
 * The other side of a connection: the facts that were verified about it, and separately its own unverified
 * claims. Created once per session, and passed to handlers as `context.peer`; adapters create one from the
 * information of their server.
 */
import { X509Certificate } from 'node:crypto';

/**
 * The other side of a connection, the same object for all its calls. Its text form is address and claims, for
 * display.
 */
export interface PeerInfo {
  /** The address from which it connected: `host:port`, or the address of the unix socket. */
  readonly address: string;
  /**
   * Its verified identity: the result of the server's `authenticate`, else the URI of its certificate (such
   * as a SPIFFE id), else `dns:NAME` or `subject:CN=…` or `ip:ADDRESS`; `uid:1000` on unix sockets. Undefined
   * when nothing was verified.
   */
  readonly identity: string | undefined;
  /** Its own claims about itself, which are not checked. */
  readonly claims: string;
  /**
   * User, primary group and process id of the process at the other end of a unix socket, when it connected.
   * Undefined when the kernel cannot report them.
   */
  readonly uid: number | undefined;
  readonly gid: number | undefined;
  readonly pid: number | undefined;
  /** The trusted certificate whose private key the peer has proved to own. */
  readonly certificate: X509Certificate | undefined;
}

/** The facts that were verified about a peer before it sent anything. */
export type Verified = Partial<Pick<PeerInfo, 'identity' | 'uid' | 'gid' | 'pid'>> & {
  /** As received, in DER. */
  readonly certificate?: Uint8Array;
  /** Why it may have no session, for the log. */
  readonly refused?: string;
  /** True when the refusal is not the peer's fault, since this side lacks the means to check it. */
  readonly unchecked?: boolean;
  /** The kind of its sideband connection, when no third party can read or change it. Absent for plain TCP. */
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

  /** Parsed on first use, since few applications need it and it takes a while. */
  get certificate(): X509Certificate | undefined {
    const { certificate } = this.#verified;
    if (certificate !== undefined) this.#certificate ??= new X509Certificate(certificate);
    return this.#certificate;
  }

  /** Whether no third party can read or change the handshake. */
  get isPrivate(): boolean {
    return this.#verified.transport !== undefined;
  }

  /** Why it may have no session, for the log. */
  get refused(): string | undefined {
    return this.#verified.refused;
  }

  /** Whether the refusal is not the peer's fault, since this side lacks the means to check it. */
  get unchecked(): boolean {
    return this.#verified.unchecked === true;
  }

  /** The protection of the peer's identity that its sessions report. */
  get security(): 'none' | 'peer' {
    return this.isPrivate && this.identity !== undefined ? 'peer' : 'none';
  }

  /** Returns the same peer with the identity that the server's `authenticate` has returned. */
  known(identity: string): KnownPeer {
    return new KnownPeer(this.address, this.claims, { ...this.#verified, identity });
  }

  toString(): string {
    return this.claims === '' ? this.address : `${this.address} (${this.claims})`;
  }
}
