/**
 * Subsets by rendezvous hashing. Each client uses only some of the servers, so that 10,000 clients of 100
 * servers do not make a million sessions. A client ranks the servers by a hash of its own id and their
 * addresses, and uses the servers with the highest ranks. Each server is in about the same number of subsets.
 * When a server leaves, only the clients that used that server get another server. This file is used for each
 * list of a channel with the option `subset`.
 */
import { hashOfText } from './key-hash.ts';
import type { Listed } from './policy.ts';

/** Share of the subset that is in the client's own zone. The other servers take over when that zone fails. */
const nearShare = 2 / 3;

/** Returns the `size` servers with the highest ranks. */
function highest<S extends Listed>(servers: readonly S[], clientId: string, size: number): S[] {
  const ranked = servers.map((server) => ({ server, rank: hashOfText(`${clientId} ${server.address}`) }));
  ranked.sort((a, b) => b.rank - a.rank || (a.server.address < b.server.address ? -1 : 1));
  return ranked.slice(0, size).map(({ server }) => server);
}

/**
 * Returns the servers that this client uses, in the order of the list. Returns the whole list when `size` is
 * 0 or the list has no more than `size` servers. With a zone, two thirds of the servers are in that zone and
 * one third is in other zones. When one of the two groups has too few servers, the subset has more servers of
 * the other group.
 */
export function subsetOf<S extends Listed>(
  listed: readonly S[],
  clientId: string,
  size: number,
  zone: string,
): readonly S[] {
  if (size === 0 || listed.length <= size) return listed;
  const near = zone === '' ? [] : listed.filter((server) => server.zone === zone);
  const far = near.length === 0 ? listed : listed.filter((server) => server.zone !== zone);
  const fromNear = Math.min(near.length, Math.max(Math.ceil(size * nearShare), size - far.length));
  const chosen = new Set([...highest(near, clientId, fromNear), ...highest(far, clientId, size - fromNear)]);
  return listed.filter((server) => chosen.has(server));
}
