/**
 * The targets `dns:///host:port` and `dns://SERVER/host:port`, which stand for all addresses of a name. The
 * first form asks the system, which uses the hosts file and search domains, and asks DNS only for the TTL of
 * the answer. The second form asks only the DNS server SERVER. This file is used when a channel is created.
 */
import { lookup } from 'node:dns/promises';
import { formatAddress } from '../../control/socket/address.ts';
import type { Resolver } from '../connections/resolver.ts';
import { DnsQueries, type Found } from './dns-queries.ts';
import { timedResolver } from './timed.ts';

/** Returns the addresses that the system finds, with the TTL of DNS when DNS has the same addresses. */
export async function systemLookup(queries: DnsQueries, host: string): Promise<Found> {
  const asked = queries.addresses(host).catch(() => undefined);
  const found = await lookup(host, { all: true });
  const addresses = found.map(({ address }) => address);
  const known = await asked;
  // A name in the hosts file or with a search domain may be unknown to DNS, or have other addresses there.
  const same = known !== undefined && addresses.every((each) => known.addresses.includes(each));
  return { addresses, ttlMs: same ? known.ttlMs : Number.POSITIVE_INFINITY };
}

/**
 * Creates a resolver that looks up the addresses of a host. `server` is the DNS server as `ip` or `ip:port`.
 * When it is undefined, the resolver of the system is used.
 */
export function dnsResolver(host: string, port: number, server: string | undefined): Resolver {
  return timedResolver(async (signal) => {
    const queries = new DnsQueries(server, signal);
    const { addresses, ttlMs } = await (server === undefined
      ? systemLookup(queries, host)
      : queries.addresses(host));
    const servers = addresses.map((each) => ({ address: formatAddress({ kind: 'tcp', host: each, port }) }));
    return { servers, ttlMs };
  });
}
