/**
 * The authorities of trust domains, as an agent gives them: those of the own one, and of others that it is
 * federated with. TLS knows all of them at once; who signs in one domain must not be able to name anybody of
 * another, so the path of each certificate is gone again here, by the authorities of the domain that it names
 * alone. Used by svid.ts, and for each client of a server.
 */
import { X509Certificate } from 'node:crypto';
import { identityOf } from '../../control/tls/certificate.ts';

/** More certificates than a path has anywhere. */
const pathMax = 8;

/** `example.org` of `spiffe://example.org/web`; undefined for what is no SPIFFE id. */
export function trustDomainOf(id: string): string | undefined {
  return /^spiffe:\/\/([a-z0-9._-]{1,255})(?:\/.*)?$/.exec(id)?.[1];
}

const spkiOf = ({ publicKey }: X509Certificate): string =>
  publicKey.export({ type: 'spki', format: 'der' }).toString('base64');

function hasIssued(issuer: X509Certificate, certificate: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

interface Bundle {
  readonly pem: string;
  readonly authorities: readonly X509Certificate[];
  /** Their public keys. */
  readonly keys: ReadonlySet<string>;
}

export class TrustDomains {
  readonly #bundles = new Map<string, Bundle>();

  /** PEM, by domain. */
  constructor(domains: ReadonlyMap<string, readonly string[]>) {
    for (const [domain, pems] of domains) {
      const authorities = pems.map((pem) => new X509Certificate(pem));
      this.#bundles.set(domain, { pem: pems.join(''), authorities, keys: new Set(authorities.map(spkiOf)) });
    }
  }

  /** The authorities of all of them, as PEM. */
  get ca(): string {
    return [...this.#bundles.values()].map(({ pem }) => pem).join('');
  }

  /** Those that sign the certificates of these ids. Throws when nobody is known who does. */
  caOf(ids: readonly string[]): string {
    const domains = new Set(ids.map((id) => trustDomainOf(id) ?? id));
    return [...domains].map((domain) => this.#bundleOf(domain).pem).join('');
  }

  /**
   * What is wrong with a certificate that TLS has found to be good by some authority of these. `certificate`:
   * with those behind it that were sent.
   */
  fault(certificate: X509Certificate): Error | undefined {
    try {
      this.#check(certificate);
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }

  #bundleOf(domain: string): Bundle {
    const bundle = this.#bundles.get(domain);
    if (bundle === undefined)
      throw new Error(`the agent has given no authorities of the trust domain ${domain}`);
    return bundle;
  }

  #check(certificate: X509Certificate): void {
    const id = identityOf(certificate);
    const domain = id === undefined ? undefined : trustDomainOf(id);
    if (domain === undefined) throw new Error('the certificate has no SPIFFE id');
    const bundle = this.#bundleOf(domain);
    // All that TLS knows are those.
    if (this.#bundles.size === 1) return;
    const notOf = `the certificate of ${id} is not signed by an authority of its trust domain`;
    let unseen = '';
    let at = certificate;
    for (let length = 1; length < pathMax; ++length) {
      const root = bundle.authorities.find((authority) => hasIssued(authority, at));
      const next = at.issuerCertificate;
      if (root !== undefined) {
        // TLS could have gone by another path with those that are not needed.
        if (next !== undefined && !next.raw.equals(root.raw)) break;
        return;
      }
      // TLS has found a path all the same. Node 24.21 shows a server nothing of what a client sends behind
      // its own certificate, where 22 and 26 do, and without that nobody knows whose authority is at the end
      // of the path.
      if (next === undefined) unseen = `, and Node ${process.versions.node} shows no certificate behind it`;
      if (next === undefined || !hasIssued(next, at) || this.#isOfAnother(next, bundle)) break;
      at = next;
    }
    throw new Error(`${notOf}${unseen}`);
  }

  /** TLS may have ended its path there, and not seen what the domain itself has said of this authority. */
  #isOfAnother(authority: X509Certificate, own: Bundle): boolean {
    const key = spkiOf(authority);
    return [...this.#bundles.values()].some((bundle) => bundle !== own && bundle.keys.has(key));
  }
}
