/**
 * Makes certificates for tests. The certificates are made during the test run, because Node can read X.509
 * certificates but cannot write them. This file implements only the part of DER that the certificates need.
 * It always uses P-256 and SHA-256.
 */
import {
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';

const tag = { integer: 2, bits: 3, octets: 4, oid: 6, utf8: 12, time: 24, sequence: 48, set: 49 } as const;

function der(kind: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const { byteLength: size } = body;
  let length = Buffer.of(size);
  if (size > 0xff) length = Buffer.of(0x82, size >> 8, size & 0xff);
  else if (size > 0x7f) length = Buffer.of(0x81, size);
  return Buffer.concat([Buffer.of(kind), length, body]);
}

/** Encodes numbers below 2^21 behind the first two. */
function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  const bytes = rest.flatMap((part) => {
    const groups = [part & 0x7f];
    for (let left = part >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    return groups;
  });
  return der(tag.oid, Buffer.of(first * 40 + second, ...bytes));
}

const text = (value: string): Buffer => Buffer.from(value, 'utf8');
const name = (common: string): Buffer =>
  der(
    tag.sequence,
    ...(common === '' ? [] : [der(tag.set, der(tag.sequence, oid('2.5.4.3'), der(tag.utf8, text(common))))]),
  );
const time = (date: Date): Buffer =>
  der(tag.time, text(`${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`));
const algorithm = der(tag.sequence, oid('1.2.840.10045.4.3.2'));
const extension = (id: string, value: Buffer): Buffer => der(tag.sequence, oid(id), der(tag.octets, value));

export interface Wanted {
  /** Common name of the subject. */
  readonly subject?: string;
  readonly uris?: readonly string[];
  readonly names?: readonly string[];
  /** IP addresses. */
  readonly addresses?: readonly string[];
  /** Days from now, negative for the past. The default is one day. */
  readonly days?: number;
  readonly authority?: boolean;
}

export interface Issued {
  /** The certificate as PEM. */
  readonly cert: string;
  readonly key: string;
  readonly certificate: X509Certificate;
}

/** Returns the certificate and key as options of TLS. */
export const pems = ({ cert, key }: Issued): { cert: string; key: string } => ({ cert, key });

const day = 86_400_000;

/** Accepts IPv4, or IPv6 with `::` in it. */
function addressBytes(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number));
  const [before, after] = address.split('::').map((part) =>
    Buffer.from(
      part
        .split(':')
        .map((group) => group.padStart(4, '0'))
        .join(''),
      'hex',
    ),
  );
  const bytes = Buffer.alloc(16);
  bytes.set(before!);
  bytes.set(after!, bytes.length - after!.length);
  return bytes;
}

function certificate(wanted: Wanted, subjectKey: KeyObject, issuer: string, issuerKey: KeyObject): Buffer {
  const { subject = '', uris = [], names = [], addresses = [], days = 1, authority = false } = wanted;
  const end = new Date(Date.now() + days * day);
  const begin = new Date(Math.min(Date.now(), end.getTime()) - day);
  const alternatives = [
    ...uris.map((uri) => der(0x86, text(uri))),
    ...names.map((host) => der(0x82, text(host))),
    ...addresses.map((address) => der(0x87, addressBytes(address))),
  ];
  const extensions = [
    extension('2.5.29.19', der(tag.sequence, ...(authority ? [Buffer.of(1, 1, 0xff)] : []))),
    ...(alternatives.length > 0 ? [extension('2.5.29.17', der(tag.sequence, ...alternatives))] : []),
  ];
  const body = der(
    tag.sequence,
    der(0xa0, der(tag.integer, Buffer.of(2))),
    der(tag.integer, Buffer.of(0x40), randomBytes(8)),
    algorithm,
    name(issuer),
    der(tag.sequence, time(begin), time(end)),
    name(subject),
    subjectKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(tag.sequence, ...extensions)),
  );
  return der(tag.sequence, body, algorithm, der(tag.bits, Buffer.of(0), sign('sha256', body, issuerKey)));
}

/**
 * Creates a certificate revocation list. `serials` are the serial numbers, in hex, of certificates that have
 * been revoked. `days` is the time until a newer list is due.
 */
function revocations(serials: readonly string[], issuer: string, issuerKey: KeyObject, days: number): Buffer {
  const [begin, end] = [new Date(Date.now() - 2 * day), new Date(Date.now() + days * day)];
  const revoked = serials.map((serial) =>
    der(tag.sequence, der(tag.integer, Buffer.from(serial, 'hex')), time(begin)),
  );
  const body = der(
    tag.sequence,
    der(tag.integer, Buffer.of(1)),
    algorithm,
    name(issuer),
    time(begin),
    time(end),
    ...(revoked.length > 0 ? [der(tag.sequence, ...revoked)] : []),
  );
  return der(tag.sequence, body, algorithm, der(tag.bits, Buffer.of(0), sign('sha256', body, issuerKey)));
}

const pem = (bytes: Buffer, what = 'CERTIFICATE'): string =>
  [
    `-----BEGIN ${what}-----`,
    ...bytes.toString('base64').match(/.{1,64}/g)!,
    `-----END ${what}-----`,
    '',
  ].join('\n');

/** An authority that no side trusts yet. */
export class Authority {
  readonly ca: string;
  readonly #name: string;
  readonly #key: KeyObject;

  /** `parent` is the authority that has signed this one; without a parent it is self-signed. */
  constructor(common = 'test authority', parent?: Authority) {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#name = common;
    this.#key = privateKey;
    this.ca = (parent ?? this).certify(this);
  }

  /** Returns the certificate of another authority, signed by this one. */
  certify(other: Authority): string {
    const wanted = { subject: other.#name, authority: true, days: 10 };
    return pem(certificate(wanted, createPublicKey(other.#key), this.#name, this.#key));
  }

  /** Returns a list of the certificates that the authority has revoked. */
  revoke(...issued: readonly Issued[]): string {
    const serials = issued.map(({ certificate }) => certificate.serialNumber);
    return pem(revocations(serials, this.#name, this.#key, 1), 'X509 CRL');
  }

  /** Returns an empty list that is out of date: a newer list should already have replaced it. */
  oldList(): string {
    return pem(revocations([], this.#name, this.#key, -1), 'X509 CRL');
  }

  issue(wanted: Wanted): Issued {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const cert = pem(certificate(wanted, publicKey, this.#name, this.#key));
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
    return { cert, key, certificate: new X509Certificate(cert) };
  }
}
