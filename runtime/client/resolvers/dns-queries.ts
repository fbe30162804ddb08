/**
 * Queries to DNS servers, whose answers have a time to live (TTL). The system's own lookup (getaddrinfo) uses
 * the hosts file and search domains but returns no TTL. dns.ts and srv.ts use this file.
 */
import { NODATA, NOTFOUND, type SrvRecord } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { unavailable } from '../../core/errors/failure.ts';
import { dnsTimeoutMs, dnsTries } from '../connections/limits.ts';

export interface Found {
  readonly addresses: readonly string[];
  /** The time for which the answer is valid; Infinity when the answer has no TTL. */
  readonly ttlMs: number;
}

/** Codes of errors that are valid answers: the name does not exist, or it has no record of that type. */
const none: readonly string[] = [NODATA, NOTFOUND];

/** The queries of one resolution, to the DNS servers of the system or to `server`, an `ip` or `ip:port`. */
export class DnsQueries {
  readonly #resolver: Resolver;

  /** The queries are cancelled when `signal` is aborted. */
  constructor(server: string | undefined, signal: AbortSignal) {
    const resolver = new Resolver({ timeout: dnsTimeoutMs, tries: dnsTries });
    if (server !== undefined) resolver.setServers([server]);
    signal.addEventListener('abort', () => resolver.cancel(), { once: true });
    this.#resolver = resolver;
  }

  /**
   * Returns the addresses of the A and AAAA records of a name. Rejects only when both queries give no
   * address, because many DNS servers answer one of the two queries with an error although the other
   * succeeds.
   */
  async addresses(host: string): Promise<Found> {
    if (isIP(host) !== 0) return { addresses: [host], ttlMs: Number.POSITIVE_INFINITY };
    const answers = await Promise.allSettled([
      this.#resolver.resolve4(host, { ttl: true }),
      this.#resolver.resolve6(host, { ttl: true }),
    ]);
    const records = answers.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
    if (records.length === 0) throw this.#worst(answers, host);
    return {
      addresses: records.map(({ address }) => address),
      ttlMs: Math.min(...records.map(({ ttl }) => ttl)) * 1000,
    };
  }

  /** Returns the SRV records of a name. */
  services(name: string): Promise<readonly SrvRecord[]> {
    return this.#resolver.resolveSrv(name);
  }

  /**
   * Returns the more useful of the errors: an error of the server is more useful than an answer that the name
   * has no record.
   */
  #worst(answers: readonly PromiseSettledResult<unknown>[], host: string): unknown {
    const errors = answers.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
    const isNone = (error: unknown): boolean => none.includes((error as NodeJS.ErrnoException).code ?? '');
    return errors.find((error) => !isNone(error)) ?? errors[0] ?? unavailable(`${host} has no address`);
  }
}
