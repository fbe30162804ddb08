/**
 * The targets `srv:///_service._proto.name` and `srv://SERVER/_service._proto.name`, which stand for the
 * servers of the SRV records of that name (RFC 2782), with their ports and weights. This file is used when a
 * channel is created.
 */
import type { SrvRecord } from 'node:dns';
import { formatAddress } from '../../control/socket/address.ts';
import { weight as weights } from '../connections/limits.ts';
import type { Resolver } from '../connections/resolver.ts';
import type { ServerAddress } from '../connections/servers.ts';
import { systemLookup } from './dns.ts';
import { DnsQueries, type Found } from './dns-queries.ts';
import { timedResolver } from './timed.ts';

/**
 * The weight that is used for weight 0 when other records have weights: RFC 2782 demands "a very small
 * chance" for such a record.
 */
const smallWeight = 0.01;

/**
 * Returns the servers of one priority. When a target has several addresses, its weight is divided among them.
 * Targets without an address are left out; rejects when no target has an address.
 */
async function serversOf(
  records: readonly SrvRecord[],
  find: (host: string) => Promise<Found>,
): Promise<{ servers: ServerAddress[]; ttlMs: number }> {
  const found = await Promise.allSettled(records.map(({ name }) => find(name)));
  const plain = records.every(({ weight }) => weight === 0);
  const servers: ServerAddress[] = [];
  let ttlMs = Number.POSITIVE_INFINITY;
  let failure: unknown;
  found.forEach((each, i) => {
    if (each.status === 'rejected') {
      failure ??= each.reason;
      return;
    }
    const { weight, port } = records[i]!;
    const { addresses } = each.value;
    ttlMs = Math.min(ttlMs, each.value.ttlMs);
    for (const host of addresses) {
      const share = plain ? 1 : Math.max(weight, smallWeight) / addresses.length;
      // The share of one of many addresses may be less than the smallest weight of a channel.
      const ofAddress = Math.max(share, weights.min);
      servers.push({ address: formatAddress({ kind: 'tcp', host, port }), weight: ofAddress });
    }
  });
  if (servers.length === 0) throw failure;
  return { servers, ttlMs };
}

/**
 * Creates a resolver that looks up SRV records and the addresses of their hosts. `server` is the DNS server
 * as `ip` or `ip:port`; undefined for the DNS servers of the system.
 */
export function srvResolver(name: string, server: string | undefined): Resolver {
  return timedResolver(async (signal) => {
    const queries = new DnsQueries(server, signal);
    const find = (host: string): Promise<Found> =>
      server === undefined ? systemLookup(queries, host) : queries.addresses(host);
    // RFC 2782: a target of "." means that the service is not available at this domain.
    const records = (await queries.services(name)).filter(
      ({ name: target }) => target !== '' && target !== '.',
    );
    const priorities = [...new Set(records.map(({ priority }) => priority))].sort(
      (one, other) => one - other,
    );
    let failure: unknown;
    for (const priority of priorities) {
      try {
        return await serversOf(
          records.filter((each) => each.priority === priority),
          find,
        );
      } catch (error) {
        failure ??= error;
      }
    }
    throw failure ?? new Error(`${name} has no SRV record with a server`);
  });
}
