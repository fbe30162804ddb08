/**
 * Decides by identity which clients may have a session. It decides once for each connection, when the hello
 * has arrived and before anything is created for the connection. A server uses this file on its JS thread.
 */
import { controlText, type Hello } from '../control/frames.ts';
import { RpcError } from '../core/errors/rpc-error.ts';
import { Status, type StatusCode } from '../core/errors/status.ts';
import { textOf } from '../core/foreign.ts';
import { hasControl, oneLine } from '../core/log.ts';
import { Metadata } from '../core/metadata.ts';
import { decodeMetadata } from '../core/metadata-wire.ts';
import type { KnownPeer, PeerInfo } from '../core/peer.ts';
import { controlTextBytes } from '../limits.ts';

/**
 * Option `allow`. A peer is accepted when one of these properties matches. A property that is unknown for the
 * peer never matches.
 */
export interface AllowedPeers {
  /** Ids of users at the other end of a unix socket. */
  uid?: number | readonly number[];
  /** Ids of primary groups of processes at the other end of a unix socket. */
  gid?: number | readonly number[];
  /** Verified identities in the form of `context.peer.identity`. */
  identity?: string | readonly string[];
}

export interface CheckedAllowedPeers {
  readonly uid: readonly number[] | undefined;
  readonly gid: readonly number[] | undefined;
  readonly identity: readonly string[] | undefined;
}

/** The error that refuses a client. The client gets the message; the log also contains the reason. */
export class NotAdmitted extends RpcError {
  readonly reason: string;

  constructor(code: StatusCode, message: string, reason: string) {
    super(code, message, { processed: 'no' });
    this.reason = reason;
  }
}

/** Describes a peer for the log. */
function shown(peer: PeerInfo): string {
  const { uid, gid, pid, identity } = peer;
  if (uid === undefined && gid === undefined) return identity ?? 'without any identity';
  return `uid ${uid ?? 'unknown'}, gid ${gid ?? 'unknown'}, pid ${pid ?? 'unknown'}`;
}

const has = <T>(list: readonly T[] | undefined, value: T | undefined): boolean =>
  value !== undefined && list?.includes(value) === true;

/** Throws when TLS has refused the peer. */
export function checkVerified({ refused, unchecked }: KnownPeer): void {
  if (refused === undefined) return;
  const text = unchecked
    ? 'this server cannot check certificates of clients'
    : 'this server accepts only clients with a certificate that it trusts (option tls of the channel)';
  throw new NotAdmitted(Status.UNAUTHENTICATED, text, refused);
}

/** Throws for an identity that looks like a pattern, because it would match no peer. */
export function checkWhole(what: string, identities: Iterable<string>): void {
  for (const identity of identities)
    if (identity.endsWith('*'))
      throw new TypeError(`${what}: '${identity}': identities are compared as a whole, * is not a pattern`);
}

/** The checked option `allow`. Throws a TypeError for an empty option, which would admit no client. */
export class Allowed {
  readonly #allow: CheckedAllowedPeers | undefined;

  constructor(given: AllowedPeers | undefined, checked: CheckedAllowedPeers) {
    this.#allow = given === undefined ? undefined : checked;
    if (given !== undefined && Object.values(checked).every((list) => list === undefined))
      throw new TypeError('createServer: allow: the option is empty; give uid, gid or identity');
    checkWhole('createServer: allow: identity', this.#allow?.identity ?? []);
  }

  /** Throws when the peer matches no property of the option. */
  check(peer: PeerInfo): void {
    const allow = this.#allow;
    if (allow === undefined) return;
    const { uid, gid, identity } = peer;
    if (has(allow.uid, uid) || has(allow.gid, gid) || has(allow.identity, identity)) return;
    const known = uid !== undefined || identity !== undefined;
    throw new NotAdmitted(
      known ? Status.PERMISSION_DENIED : Status.UNAUTHENTICATED,
      'this server does not allow this client (option allow of the server)',
      shown(peer),
    );
  }
}

/** Returns whether a value is a valid identity. An empty text means "unknown" and is not an identity. */
function isIdentity(given: unknown): given is string {
  if (typeof given !== 'string' || given === '' || hasControl.test(given)) return false;
  return Buffer.byteLength(given) <= controlTextBytes;
}

/** Option `authenticate`. */
export type Authenticate = (
  peer: PeerInfo,
  metadata: Metadata,
) => string | undefined | Promise<string | undefined>;

/**
 * Resolves with the peer's identity according to the application. Rejects to refuse the peer. The error is
 * the application's RpcError, or an RpcError that does not reveal the reason.
 */
export async function authenticated(
  authenticate: Authenticate,
  peer: KnownPeer,
  { metadata }: Hello,
): Promise<KnownPeer> {
  try {
    const shown = metadata === undefined ? new Metadata() : decodeMetadata(metadata, 0, metadata.byteLength);
    const identity: unknown = await authenticate(peer, shown);
    if (identity === undefined) return peer;
    if (isIdentity(identity)) return peer.known(identity);
    throw new TypeError(
      `authenticate has returned no identity, which is a text of 1 to ${controlTextBytes} bytes without control characters, nor undefined`,
    );
  } catch (error) {
    if (error instanceof RpcError) throw error;
    throw new NotAdmitted(
      Status.UNAUTHENTICATED,
      'the server does not accept this client (option authenticate of the server)',
      textOf(error),
    );
  }
}

/** Returns the reason for the log in one line, cut to the length that a control frame may have. */
export function reasonOf(error: RpcError): string {
  const { rawMessage } = error;
  return controlText(oneLine(error instanceof NotAdmitted ? `${rawMessage}: ${error.reason}` : rawMessage));
}
