/**
 * The authorities of the trust domains that an agent provides, which are our own domain and the federated
 * domains. TLS accepts certificates of all these authorities, but an authority of one domain must not be able
 * to issue ids of another domain. Therefore the path of each certificate is verified again here, with only
 * the authorities of the domain that the certificate names. svid.ts uses this file, and a server uses it for
 * each of its clients.
 */
import { X509Certificate } from 'node:crypto';
import { identityOf } from '../../control/tls/certificate.ts';

/** Limit of the certificates in a path. No real path has more. */
const pathMax = 8;

/**
 * Returns the trust domain of a SPIFFE id, such as `example.org` for `spiffe://example.org/web`. Returns
 * undefined when `id` is not a SPIFFE id.
 */
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
  /** The public keys of the authorities. */
  readonly keys: ReadonlySet<string>;
}

export class TrustDomains {
  readonly #bundles = new Map<string, Bundle>();

  /** `domains` has the authorities in PEM, by domain. */
  constructor(domains: ReadonlyMap<string, readonly string[]>) {
    for (const [domain, pems] of domains) {
      const authorities = pems.map((pem) => new X509Certificate(pem));
      this.#bundles.set(domain, { pem: pems.join(''), authorities, keys: new Set(authorities.map(spkiOf)) });
    }
  }

  /** The authorities of all domains, as PEM. */
  get ca(): string {
    return [...this.#bundles.values()].map(({ pem }) => pem).join('');
  }

  /**
   * Returns the authorities, in PEM, that sign the certificates of these ids. Throws when no authority of a
   * domain is known.
   */
  caOf(ids: readonly string[]): string {
    const domains = new Set(ids.map((id) => trustDomainOf(id) ?? id));
    return [...domains].map((domain) => this.#bundleOf(domain).pem).join('');
  }

  /**
   * Returns the reason why a certificate that TLS has accepted must be rejected, or undefined. `certificate`
   * links to the certificates that were sent behind it.
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
    // With a single domain, the check by TLS is enough, because TLS knows no other authorities.
    if (this.#bundles.size === 1) return;
    const notOf = `the certificate of ${id} is not signed by an authority of its trust domain`;
    let unseen = '';
    let at = certificate;
    for (let length = 1; length < pathMax; ++length) {
      const root = bundle.authorities.find((authority) => hasIssued(authority, at));
      const next = at.issuerCertificate;
      if (root !== undefined) {
        // If the peer sent further certificates, TLS may have used another path.
        if (next !== undefined && !next.raw.equals(root.raw)) break;
        return;
      }
      // TLS has found a path although this check finds none. Node 24.21 does not show a server the
      // certificates that a client sends behind its own certificate (Node 22 and 26 do). Without them the
      // authority at the end of the path is unknown.
      if (next === undefined) unseen = `, and Node ${process.versions.node} shows no certificate behind it`;
      if (next === undefined || !hasIssued(next, at) || this.#isOfAnother(next, bundle)) break;
      at = next;
    }
    throw new Error(`${notOf}${unseen}`);
  }

  /**
   * Returns whether an authority in the path also belongs to another domain. TLS may then have ended its path
   * at this authority, and may have skipped the certificate by which the peer's domain restricts this
   * authority.
   */
  #isOfAnother(authority: X509Certificate, own: Bundle): boolean {
    const key = spkiOf(authority);
    return [...this.#bundles.values()].some((bundle) => bundle !== own && bundle.keys.has(key));
  }
}
