/**
 * The targets `dns:///host:port` and `dns://SERVER/host:port`: all addresses of a name. The first asks the
 * system, whose rules know the hosts file and search domains, and DNS only for the time that the answer is
 * valid. The second asks that DNS server alone. Used when a channel is created.
 */
import { lookup } from 'node:dns/promises';
import { formatAddress } from '../../control/socket/address.ts';
import type { Resolver } from '../connections/resolver.ts';
import { DnsQueries, type Found } from './dns-queries.ts';
import { timedResolver } from './timed.ts';

/** Returns the addresses by the rules of the system, and the TTL if DNS has the same name. */
export async function systemLookup(queries: DnsQueries, host: string): Promise<Found> {
  const asked = queries.addresses(host).catch(() => undefined);
  const found = await lookup(host, { all: true });
  const addresses = found.map(({ address }) => address);
  const known = await asked;
  // A name of the hosts file, or one with a search domain, may be another name for DNS.
  const same = known !== undefined && addresses.every((each) => known.addresses.includes(each));
  return { addresses, ttlMs: same ? known.ttlMs : Number.POSITIVE_INFINITY };
}

/** `server` is the DNS server as `ip` or `ip:port`; undefined for the rules of the system. */
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
