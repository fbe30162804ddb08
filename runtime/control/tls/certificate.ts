/**
 * Determines the identity that a certificate names. Used for peers on both sides, after TLS has verified the
 * certificate.
 */
import { X509Certificate } from 'node:crypto';
import { isIP, SocketAddress } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { promiseOf, textOf } from '../../core/foreign.ts';
import { hasControl, oneLine, quoted } from '../../core/log.ts';
import type { Verified } from '../../core/peer.ts';

/** Prefixes of identities that are not URIs. A URI that looks like one of them is rejected. */
const ownSchemes = /^(uid|dns|subject|ip|psk):/i;

/**
 * A SPIFFE id of a leaf certificate, by the standards SPIFFE-ID 2 and X509-SVID 3: it has a path, and no
 * segment of the path is empty, `.` or `..`.
 */
const spiffeId = /^spiffe:\/\/[a-z0-9._-]{1,255}(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+)+$/;
const spiffeIdMax = 2048;

/** `TYPE:value`, or `TYPE:"value"` as JSON when it has characters that could be mistaken. */
const alternative = /([^:,]+):("(?:[^"\\]|\\.)*"|[^,]*)(?:, |$)/y;

function alternatives(text: string): [kind: string, value: string][] | undefined {
  const found: [string, string][] = [];
  alternative.lastIndex = 0;
  for (let at = 0; at < text.length; at = alternative.lastIndex) {
    const [, kind, value = ''] = alternative.exec(text) ?? [];
    if (kind === undefined) return undefined;
    found.push([kind, value.startsWith('"') ? String(JSON.parse(value)) : value]);
  }
  return found;
}

/** The parts of a certificate from which the identity is derived. */
type Names = Pick<X509Certificate, 'subject' | 'subjectAltName' | 'ca'>;

/**
 * The certificate of the other end as TLS has parsed it. An X509Certificate takes eight times as long to
 * create, and the one from getPeerX509Certificate() leaks memory: Node 20 never frees the intermediate
 * certificates that were sent with it. So it is created only where it is needed.
 */
export class SeenCertificate implements Names {
  readonly #seen: PeerCertificate;

  private constructor(seen: PeerCertificate) {
    this.#seen = seen;
  }

  /** Returns undefined when there is no certificate. */
  static of(seen: PeerCertificate): SeenCertificate | undefined {
    // Node may return an empty object.
    return (seen as Partial<PeerCertificate>)?.raw === undefined ? undefined : new SeenCertificate(seen);
  }

  get raw(): Uint8Array {
    return this.#seen.raw;
  }

  get subjectAltName(): string {
    return this.#seen.subjectaltname ?? '';
  }

  get ca(): boolean {
    return this.#seen.ca ?? new X509Certificate(this.raw).ca;
  }

  /** Only an X509Certificate has the subject as a text. */
  get subject(): string {
    return new X509Certificate(this.raw).subject;
  }
}

/**
 * Returns the URI in the certificate; without one, `dns:NAME` of the first name, then `subject:CN=…`, then
 * `ip:ADDRESS` of the first address. Returns undefined when the identity is ambiguous or invalid: several
 * URIs, a URI that looks like another kind of identity, a SPIFFE id that violates its standard or is in the
 * certificate of an authority, unreadable names, or control characters.
 */
export function identityOf(certificate: Names): string | undefined {
  const found = nameIn(certificate);
  return found === undefined || hasControl.test(found) ? undefined : found;
}

function nameIn(certificate: Names): string | undefined {
  const { subjectAltName = '' } = certificate;
  const names = alternatives(subjectAltName);
  if (names === undefined) return undefined;
  const uris = names.flatMap(([kind, value]) => (kind === 'URI' ? [value] : []));
  const [uri] = uris;
  if (uri !== undefined) {
    if (uris.length > 1 || ownSchemes.test(uri)) return undefined;
    return !/^spiffe:/i.test(uri) || (spiffeId.test(uri) && uri.length <= spiffeIdMax && !certificate.ca)
      ? uri
      : undefined;
  }
  const firstOf = (wanted: string) => names.find(([kind]) => kind === wanted)?.[1];
  const name = firstOf('DNS');
  if (name !== undefined) return `dns:${name}`;
  const { subject } = certificate;
  // The parts of the subject are on separate lines.
  if (subject) return `subject:${subject.trim().replaceAll('\n', ', ')}`;
  const address = firstOf('IP Address');
  // OpenSSL writes IPv6 addresses at full length.
  const family = address === undefined ? 0 : isIP(address);
  if (address === undefined || family === 0) return undefined;
  return `ip:${family === 6 ? new SocketAddress({ address, family: 'ipv6' }).address : address}`;
}

/** Describes an untrusted certificate for the log. It may contain any text. */
function shownBy(certificate: SeenCertificate): string {
  const name = identityOf(certificate) ?? 'no unambiguous name';
  const { issuer, serialNumber } = new X509Certificate(certificate.raw);
  const by = quoted(issuer?.trim().replaceAll('\n', ', ') ?? '');
  return `it shows a certificate of ${quoted(name)}, issued by ${by}, serial number ${serialNumber}`;
}

const verdicts = new WeakMap<object, Verified>();

/** Records what is known about the other end of a connection. */
export function vouch(duplex: object, verified: Verified): void {
  verdicts.set(duplex, verified);
}

/** Returns what was recorded, or undefined. */
export function verdictOf(duplex: object): Verified | undefined {
  return verdicts.get(duplex);
}

type Check = (certificate: X509Certificate) => unknown;

/**
 * Returns why the application rejects a certificate; undefined when it does not. Catches errors of `check`,
 * since nobody would handle them where this is called.
 */
function faultIn(socket: TLSSocket, check: Check): string | undefined {
  try {
    // This includes the intermediate certificates that were sent.
    const certificate = socket.getPeerX509Certificate();
    const found = certificate === undefined ? 'it is gone' : check(certificate);
    if (found === undefined || found === null) return undefined;
    promiseOf(found)?.catch(() => undefined);
    // An error without a text is still a rejection.
    return oneLine(textOf(found)) || 'checkClientIdentity refuses it';
  } catch (error) {
    return `checkClientIdentity has failed: ${oneLine(textOf(error))}`;
  }
}

/**
 * Returns what TLS knows about the other end. With `required`, a peer without a trusted certificate is
 * refused. `check` is an additional check by the application.
 */
export function certified(socket: TLSSocket, required: boolean, check?: Check): Verified {
  const certificate = SeenCertificate.of(socket.getPeerCertificate());
  if (certificate !== undefined && socket.authorized) {
    const fault = check && faultIn(socket, check);
    if (fault !== undefined)
      return { transport: 'tls', ...(required && { refused: `${fault}: ${shownBy(certificate)}` }) };
    const identity = identityOf(certificate);
    return { transport: 'tls', certificate: certificate.raw, ...(identity !== undefined && { identity }) };
  }
  if (!required) return { transport: 'tls' };
  if (certificate === undefined) return { transport: 'tls', refused: 'no certificate' };
  // Node stores OpenSSL's code here, contrary to its type.
  const code = String(socket.authorizationError);
  // The revocation list is outdated or of another authority, so no certificate can be verified with it.
  const unchecked = /(^|_)CRL(_|$)/.test(code);
  const why = unchecked ? `its own option tls: crl is of no use: ${code}` : code;
  return { transport: 'tls', unchecked, refused: `${why}: ${shownBy(certificate)}` };
}
