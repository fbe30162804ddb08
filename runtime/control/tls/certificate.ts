/**
 * Determines the identity that a certificate names. This file is used for peers on both sides, after TLS has
 * verified the certificate.
 */
import { X509Certificate } from 'node:crypto';
import { isIP, SocketAddress } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { promiseOf, textOf } from '../../core/foreign.ts';
import { hasControl, oneLine, quoted } from '../../core/log.ts';
import type { Verified } from '../../core/peer.ts';

/** Prefixes of identities that are not URIs. A URI with such a prefix is rejected. */
const ownSchemes = /^(uid|dns|subject|ip|psk):/i;

/**
 * Matches the SPIFFE id of a leaf certificate (standards SPIFFE-ID 2 and X509-SVID 3). Such an id has a path,
 * and no segment of the path is empty, `.` or `..`.
 */
const spiffeId = /^spiffe:\/\/[a-z0-9._-]{1,255}(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+)+$/;
const spiffeIdMax = 2048;

/**
 * Matches one name in the text of subjectAltName: `TYPE:value`, or `TYPE:"value"` in JSON form when the value
 * contains special characters.
 */
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
 * The certificate of the other end in the form that TLS has parsed. An X509Certificate takes eight times as
 * long to create. Moreover, getPeerX509Certificate() leaks memory in Node 20: it never frees the intermediate
 * certificates that were sent with the certificate. An X509Certificate is therefore created only when it is
 * needed.
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
 * Returns the URI in the certificate. Without a URI it returns `dns:NAME` of the first name, else
 * `subject:CN=…`, else `ip:ADDRESS` of the first address. Returns undefined when the identity is ambiguous or
 * invalid. This is so for certificates with several URIs, with a URI that looks like another kind of
 * identity, with a SPIFFE id that violates its standard or belongs to an authority, with unreadable names, or
 * with control characters.
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
  // Node writes the parts of the subject on separate lines.
  if (subject) return `subject:${subject.trim().replaceAll('\n', ', ')}`;
  const address = firstOf('IP Address');
  // OpenSSL writes IPv6 addresses at full length.
  const family = address === undefined ? 0 : isIP(address);
  if (address === undefined || family === 0) return undefined;
  return `ip:${family === 6 ? new SocketAddress({ address, family: 'ipv6' }).address : address}`;
}

/** Describes an untrusted certificate, which may contain any text, for the log. */
function shownBy(certificate: SeenCertificate): string {
  const name = identityOf(certificate) ?? 'no unambiguous name';
  const { issuer, serialNumber } = new X509Certificate(certificate.raw);
  const by = quoted(issuer?.trim().replaceAll('\n', ', ') ?? '');
  return `it shows a certificate of ${quoted(name)}, issued by ${by}, serial number ${serialNumber}`;
}

const verdicts = new WeakMap<object, Verified>();

/** Stores the facts about the other end of a connection. */
export function vouch(duplex: object, verified: Verified): void {
  verdicts.set(duplex, verified);
}

/** Returns the facts that `vouch` has stored about a connection, or undefined. */
export function verdictOf(duplex: object): Verified | undefined {
  return verdicts.get(duplex);
}

type Check = (certificate: X509Certificate) => unknown;

/**
 * Returns the reason why the application rejects a certificate, or undefined when the application accepts it.
 * Catches errors of `check`, because no caller would handle them.
 */
function faultIn(socket: TLSSocket, check: Check): string | undefined {
  try {
    // This certificate leads to the intermediate certificates that were sent with it.
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
  // Node stores OpenSSL's code in this property, contrary to its type.
  const code = String(socket.authorizationError);
  // The revocation list is outdated or belongs to another authority, so it cannot verify any certificate.
  const unchecked = /(^|_)CRL(_|$)/.test(code);
  const why = unchecked ? `its own option tls: crl is of no use: ${code}` : code;
  return { transport: 'tls', unchecked, refused: `${why}: ${shownBy(certificate)}` };
}
