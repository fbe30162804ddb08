/**
 * Who a certificate is for, by the names in it. Used for the peers of both sides, when TLS has found the
 * certificate to be trusted.
 */
import { X509Certificate } from 'node:crypto';
import { isIP, SocketAddress } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { promiseOf, textOf } from '../../core/foreign.ts';
import { hasControl, oneLine, quoted } from '../../core/log.ts';
import type { Verified } from '../../core/peer.ts';

/** Kinds of identity that are not URIs: a URI that looks like one of them is none. */
const ownSchemes = /^(uid|dns|subject|ip|psk):/i;

/**
 * Of a leaf, by the standards SPIFFE-ID 2 and X509-SVID 3: it has a path, none of whose segments is empty,
 * `.` or `..`.
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

/** What an identity is made of. */
type Names = Pick<X509Certificate, 'subject' | 'subjectAltName' | 'ca'>;

/**
 * The certificate of the other end as TLS has read it. An X509Certificate takes eight times as long, and the
 * one that getPeerX509Certificate() gives costs memory for good: Node 20 never frees the certificates that
 * were sent behind it. So one is made only where it is needed.
 */
export class SeenCertificate implements Names {
  readonly #seen: PeerCertificate;

  private constructor(seen: PeerCertificate) {
    this.#seen = seen;
  }

  /** Undefined: there is none. */
  static of(seen: PeerCertificate): SeenCertificate | undefined {
    // Node gives an empty object, too.
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

  /** As a text it is only in an X509Certificate. */
  get subject(): string {
    return new X509Certificate(this.raw).subject;
  }
}

/**
 * The URI in it, else `dns:NAME` of the first name, else `subject:CN=…`, else `ip:ADDRESS` of the first
 * address. Undefined when it is not clear: several URIs, one that looks like another kind of identity, a
 * SPIFFE id that is none by its standard or stands in the certificate of an authority, names that cannot be
 * read, control characters.
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
  // Several parts come on lines of their own.
  if (subject) return `subject:${subject.trim().replaceAll('\n', ', ')}`;
  const address = firstOf('IP Address');
  // OpenSSL writes IPv6 at full length.
  const family = address === undefined ? 0 : isIP(address);
  if (address === undefined || family === 0) return undefined;
  return `ip:${family === 6 ? new SocketAddress({ address, family: 'ipv6' }).address : address}`;
}

/** What is in a certificate that is not trusted, for the log. Anybody can write anything there. */
function shownBy(certificate: SeenCertificate): string {
  const name = identityOf(certificate) ?? 'nobody that it names clearly';
  const { issuer, serialNumber } = new X509Certificate(certificate.raw);
  const by = quoted(issuer?.trim().replaceAll('\n', ', ') ?? '');
  return `it shows a certificate of ${quoted(name)}, issued by ${by}, serial number ${serialNumber}`;
}

const verdicts = new WeakMap<object, Verified>();

/** Notes what is known of the other end of a connection. */
export function vouch(duplex: object, verified: Verified): void {
  verdicts.set(duplex, verified);
}

/** Undefined when nobody has noted anything. */
export function verdictOf(duplex: object): Verified | undefined {
  return verdicts.get(duplex);
}

type Check = (certificate: X509Certificate) => unknown;

/**
 * What the application has against a certificate; undefined for nothing. It is called where an error would be
 * nobody's.
 */
function faultIn(socket: TLSSocket, check: Check): string | undefined {
  try {
    // With those behind it that were sent.
    const certificate = socket.getPeerX509Certificate();
    const found = certificate === undefined ? 'it is gone' : check(certificate);
    if (found === undefined || found === null) return undefined;
    promiseOf(found)?.catch(() => undefined);
    // An error without words is an error.
    return oneLine(textOf(found)) || 'checkClientIdentity refuses it';
  } catch (error) {
    return `checkClientIdentity has failed: ${oneLine(textOf(error))}`;
  }
}

/**
 * What TLS knows of the other end. `required`: it may not go on without a certificate that is trusted;
 * `check`: what else has to be so.
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
  // Node has the code of OpenSSL there, whatever its type says.
  const code = String(socket.authorizationError);
  // A list that is too old or of somebody else: no certificate is good enough for that.
  const unchecked = /(^|_)CRL(_|$)/.test(code);
  const why = unchecked ? `its own option tls: crl is of no use: ${code}` : code;
  return { transport: 'tls', unchecked, refused: `${why}: ${shownBy(certificate)}` };
}
