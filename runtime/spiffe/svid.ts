/** An X.509 identity as an agent gives it, as options of TLS. Used by a workload, for each answer of its agent. */
import { X509Certificate } from 'node:crypto';
import { identityOf } from '../control/certificate.ts';
import { type Checked, secureContext, type TlsMaterial } from '../control/tls-options.ts';
import type { X509SVID } from './gen/workload.rdma.ts';

/** Nothing but this: the authorities are those of its own trust domain alone. */
export interface Svid {
  readonly id: string;
  readonly material: {
    readonly cert: string;
    readonly key: string;
    readonly ca: string;
    readonly crl?: string;
  };
  /** As `Date.now()` counts. */
  readonly expiresAtMs: number;
}

function pem(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

/** Values of DER that lie one behind the other. Throws when they are cut off. */
function* values(der: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < der.byteLength; ) {
    const first = der[at + 1] ?? 0x80;
    const sizeBytes = first < 0x80 ? 0 : first & 0x7f;
    let size = sizeBytes === 0 ? first : 0;
    for (let i = 0; i < sizeBytes; ++i) size = size * 256 + (der[at + 2 + i] ?? 0);
    const end = at + 2 + sizeBytes + size;
    if (sizeBytes > 4 || first === 0x80 || end > der.byteLength)
      throw new Error('certificates that are cut off');
    yield der.subarray(at, end);
    at = end;
  }
}

const certificates = (der: Uint8Array): string[] =>
  [...values(der)].map((one) => new X509Certificate(one).toString());

/** Throws for what is no usable identity. */
export function svidOf(
  { spiffeId, x509Svid, x509SvidKey, bundle }: X509SVID,
  crl: readonly Uint8Array[],
): Svid {
  const chain = certificates(x509Svid);
  const ca = certificates(bundle).join('');
  if (chain.length === 0 || ca === '')
    throw new Error('no certificate, or no authority that signs those of others');
  const own = new X509Certificate(chain[0]!);
  if (identityOf(own) !== spiffeId) throw new Error(`the certificate is not that of ${spiffeId}`);
  const material = {
    cert: chain.join(''),
    key: pem('PRIVATE KEY', x509SvidKey),
    ca,
    ...(crl.length > 0 && { crl: crl.map((list) => pem('X509 CRL', list)).join('') }),
  };
  secureContext(material satisfies Checked<TlsMaterial>);
  return { id: spiffeId, material, expiresAtMs: Date.parse(own.validTo) };
}
