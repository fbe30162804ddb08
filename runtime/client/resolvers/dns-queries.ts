/**
 * Queries to DNS servers that say how long an answer is valid. The system's own lookup (getaddrinfo) knows
 * the hosts file and search domains, but no times. Used by dns.ts and srv.ts.
 */
import { NODATA, NOTFOUND, type SrvRecord } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { unavailable } from '../../core/errors/failure.ts';
import { dnsTimeoutMs, dnsTries } from '../connections/limits.ts';

export interface Found {
  readonly addresses: readonly string[];
  /** Infinity when DNS does not say. */
  readonly ttlMs: number;
}

/** Errors that are answers: there is no such record, or no such name. */
const none: readonly string[] = [NODATA, NOTFOUND];

/** One transaction with the DNS servers of the system, or with one that was given as `ip` or `ip:port`. */
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
   * Returns the A and AAAA records of a name. Rejects only when there is no address: many DNS servers answer
   * one of the two questions with an error, and know the other.
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

  /** Returns the error that says most: that a server has failed rather than that it has no such record. */
  #worst(answers: readonly PromiseSettledResult<unknown>[], host: string): unknown {
    const errors = answers.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
    const isNone = (error: unknown): boolean => none.includes((error as NodeJS.ErrnoException).code ?? '');
    return errors.find((error) => !isNone(error)) ?? errors[0] ?? unavailable(`${host} has no address`);
  }
}
