/** Declares the interoperability cases as tests over one way of reaching a server. */
import { type Fabric, stats } from 'rdma-rpc';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { oneWayCases } from './one-way-cases.ts';
import type { Peer } from './peer.ts';
import { streamCases } from './stream-cases.ts';
import { type Case, unaryCases } from './unary-cases.ts';

export const cases: Readonly<Record<string, Case>> = { ...unaryCases, ...oneWayCases, ...streamCases };

/** Runs all cases over one connection, one after the other. */
export function interopSuite(name: string, fabric: 'sim' | Fabric, open: () => Promise<Peer>): void {
  describe(name, () => {
    let peer: Peer;
    beforeAll(async () => {
      peer = await open();
      await peer.channel.ready();
      expect(peer.channel.fabric).toBe(fabric);
    });
    afterAll(() => peer?.end());

    test.each(Object.entries(cases))('%s', (_, run) => run(peer));

    test('used one connection, without a protocol error', () => {
      expect(peer.channel.state).toBe('ready');
      expect(stats(fabric)).toMatchObject({ protocolErrors: 0 });
      expect(peer.channel.session?.callsInFlight).toBe(0);
    });
  });
}
