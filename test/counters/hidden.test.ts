/**
 * Tests that after `configure({ countersPage: false })`, other processes cannot read the counters of this
 * thread. The thread still counts.
 */
import { configure, createClient, stats } from 'rdma-rpc';
import { processesWithCounters, readCounters } from 'rdma-rpc/counters';
import { afterEach, describe, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { type Pair, pairWays } from '../runtime/pair.ts';
import { echoPair } from './echo-pair.ts';
import { pages } from './pages.ts';

configure({ countersPage: false });

let pair: Pair | undefined;
afterEach(async () => {
  await pair?.close();
  pair = undefined;
});

describe.each(pairWays)('over %s', (way) => {
  test('no page can be found', async () => {
    pair = await echoPair(way);
    await createClient(EchoDefinition, pair.channel).echo({ text: 'x' });
    expect(stats().calls).toBeGreaterThan(0);
    expect([pages(), processesWithCounters().includes(process.pid)]).toEqual([[], false]);
    expect(() => readCounters(process.pid)).toThrow(/hides them \(countersPage\)/);
  });
});
