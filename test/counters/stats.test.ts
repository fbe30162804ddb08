/**
 * Tests that the counters of several contexts are merged into those of one thread or process: sums, and
 * maximums for the longest times.
 */
import { expect, test } from 'vitest';
import { addStats, type Stats } from '../../runtime/native/stats.ts';

test.each<[string, Partial<Stats>[], Partial<Stats>]>([
  ['none', [], {}],
  ['one', [{ calls: 3, loopLagMaxUs: 40 }], { calls: 3, loopLagMaxUs: 40 }],
  ['counters add up', [{ calls: 3 }, { calls: 4 }], { calls: 7 }],
  ['gauges add up', [{ sendSlotsFree: 500 }, { sendSlotsFree: 24 }], { sendSlotsFree: 524 }],
  [
    'of longest times the longest counts',
    [{ loopLagMaxUs: 40 }, { loopLagMaxUs: 900 }, { loopLagMaxUs: 7 }],
    { loopLagMaxUs: 900 },
  ],
  ['one that another version does not have', [{ calls: 1 }, { requests: 2 }], { calls: 1, requests: 2 }],
])('%s', (_, contexts, sum) => {
  const all: Partial<Stats> = {};
  for (const counters of contexts) addStats(all, counters);
  expect(all).toEqual(sum);
});
