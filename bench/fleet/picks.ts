/**
 * Measures the cost of a pick: each policy over 1, 3, 10 and 100 ready connections, with the loads of calls
 * in flight and a thousand keys. The result is the best of several rounds, because other processes of the
 * machine only add to the time.
 */
import { policyNames, policyOf } from '../../runtime/client/connections/policies.ts';
import { encodeMetadata } from '../../runtime/core/metadata-wire.ts';
import { Events } from './events.ts';
import { FleetLink, FleetServer, settingsFor } from './nodes.ts';
import { chanceOf } from './scenarios.ts';

export interface Pick {
  readonly policy: string;
  readonly addresses: number;
  readonly ns: number;
}

const rounds = 7;

function measured(
  policy: (typeof policyNames)[number],
  addresses: number,
  zone: string,
  calls: number,
): number {
  const chance = chanceOf(1);
  const events = new Events();
  const links = Array.from(
    { length: addresses },
    (_, i) =>
      new FleetLink(new FleetServer(`server-${i}:5000`, `zone-${i % 2}`, events, chance, 1, 1), chance),
  );
  const chosen = policyOf<FleetLink>(
    settingsFor(policy, zone, policy === 'consistent-hash' ? 'session' : ''),
  );
  chosen.update(links, links);
  const metadata = Array.from({ length: 1024 }, (_, i) => encodeMetadata([['session', `user-${i}`]]));
  const room = (link: FleetLink): boolean => link.load < 256;
  /** The calls in flight. Each call ends when as many later calls have begun as this array has elements. */
  const inFlight = new Array<FleetLink | undefined>(64).fill(undefined);
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; ++round) {
    const begin = process.hrtime.bigint();
    for (let i = 0; i < calls; ++i) {
      const link = chosen.pick(room, metadata[(i * 17) & 1023])!;
      ++link.load;
      const ended = inFlight[i & 63];
      if (ended !== undefined) --ended.load;
      inFlight[i & 63] = link;
    }
    best = Math.min(best, Number(process.hrtime.bigint() - begin) / calls);
  }
  return best;
}

/** Measures all policies that choose among several connections. */
export function picks(calls = 300_000): Pick[] {
  const results: Pick[] = [];
  for (const addresses of [1, 3, 10, 100])
    for (const policy of policyNames) {
      if (policy === 'pick-first') continue;
      results.push({ policy, addresses, ns: measured(policy, addresses, '', calls) });
    }
  results.push({
    policy: 'least-request in a zone',
    addresses: 10,
    ns: measured('least-request', 10, 'zone-0', calls),
  });
  return results;
}
