/**
 * Converts an X.509 identity from an agent to TLS options. A workload uses this file for each response of its
 * agent.
 */
import { X509Certificate } from 'node:crypto';
import { identityOf } from '../../control/tls/certificate.ts';
import { type Checked, secureContext, type TlsMaterial } from '../../control/tls/tls-options.ts';
import { textOf } from '../../core/foreign.ts';
import { quoted } from '../../core/log.ts';
import type { X509SVID, X509SVIDResponse } from './gen/workload.rdma.ts';
import { TrustDomains, trustDomainOf } from './trust-domains.ts';

export interface Svid {
  readonly id: string;
  /** TLS options without authorities. */
  readonly material: {
    readonly cert: string;
    readonly key: string;
    readonly crl?: string;
  };
  /** The authorities of the identity's own trust domain, and of federated domains. */
  readonly domains: TrustDomains;
  /** The reasons why authorities of other domains were omitted. */
  readonly faults: readonly string[];
  /** The time of expiry in milliseconds since the epoch, on the clock of `Date.now()`. */
  readonly expiresAtMs: number;
}

function pem(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

/** Iterates over concatenated DER values. Throws when the last value is cut off. */
function* values(der: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < der.byteLength; ) {
    const first = der[at + 1] ?? 0x80;
    const sizeBytes = first < 0x80 ? 0 : first & 0x7f;
    let size = sizeBytes === 0 ? first : 0;
    for (let i = 0; i < sizeBytes; ++i) size = size * 256 + (der[at + 2 + i] ?? 0);
    const end = at + 2 + sizeBytes + size;
    if (sizeBytes > 4 || first === 0x80 || end > der.byteLength) throw new Error('truncated certificates');
    yield der.subarray(at, end);
    at = end;
  }
}

const certificates = (der: Uint8Array): string[] =>
  [...values(der)].map((one) => new X509Certificate(one).toString());

/**
 * Returns the authorities of other domains, by domain name. A bundle that cannot be used is omitted. Peers of
 * its domain are then not accepted, and other domains are not affected.
 */
function federated(
  own: string,
  bundles: Iterable<readonly [string, Uint8Array]>,
): { domains: Map<string, string[]>; faults: string[] } {
  const domains = new Map<string, string[]>();
  const faults: string[] = [];
  for (const [id, bundle] of bundles) {
    const domain = trustDomainOf(id);
    // The authorities of our own domain come with the identity.
    if (domain === own) continue;
    try {
      if (domain === undefined) throw new Error('its name is not the id of a trust domain');
      const pems = certificates(bundle);
      if (pems.length === 0) throw new Error('it contains no authority');
      domains.set(domain, pems);
    } catch (error) {
      faults.push(`the bundle of ${quoted(id)} is left out: ${textOf(error)}`);
    }
  }
  return { domains, faults };
}

/** Converts an identity. Throws when the identity cannot be used. */
export function svidOf(
  { spiffeId, x509Svid, x509SvidKey, bundle }: X509SVID,
  { crl, federatedBundles }: Pick<X509SVIDResponse, 'crl' | 'federatedBundles'>,
): Svid {
  const chain = certificates(x509Svid);
  const ca = certificates(bundle);
  if (chain.length === 0 || ca.length === 0)
    throw new Error("the agent's answer has no certificate, or no authority");
  const own = new X509Certificate(chain[0]!);
  const domain = trustDomainOf(spiffeId);
  if (identityOf(own) !== spiffeId || domain === undefined)
    throw new Error(`the certificate is not that of ${spiffeId}`);
  const material = {
    cert: chain.join(''),
    key: pem('PRIVATE KEY', x509SvidKey),
    ...(crl.length > 0 && { crl: crl.map((list) => pem('X509 CRL', list)).join('') }),
  };
  const { domains, faults } = federated(domain, Object.entries(federatedBundles));
  const all = new TrustDomains(new Map([[domain, ca], ...domains]));
  secureContext({ ...material, ca: all.ca } satisfies Checked<TlsMaterial>);
  return { id: spiffeId, material, domains: all, faults, expiresAtMs: Date.parse(own.validTo) };
}
