/**
 * Tests how `rdma-rpc bench` reports the fabric and the tiers of messages when the counters that it reads are
 * gone.
 */
import { expect, test } from 'vitest';
import { travelledIn } from '../../../cli/bench/result.ts';
import type { Stats } from '../../../runtime/native/stats.ts';

const counted = (some: Partial<Stats>): Stats =>
  ({ calls: 0, bulkRequests: 0, bulkResponses: 0, inlineSends: 0, eagerSends: 0, ...some }) as Stats;

test('reports the difference of two readings', () => {
  const after = counted({ calls: 25, bulkRequests: 4, bulkResponses: 1, inlineSends: 16, eagerSends: 5 });
  expect(travelledIn(counted({ calls: 5 }), after, { messages: 20, answers: 20 }, false)).toEqual({
    requests: { bulk: 4, sent: 16 },
    responses: { bulk: 1, sent: 19 },
    frames: { inline: 16, eager: 5 },
  });
});

test('counts no response for failed calls, and no request for calls that were never sent', () => {
  const travelled = travelledIn(counted({}), counted({ calls: 8 }), { messages: 10, answers: 8 }, false);
  expect(travelled).toMatchObject({ requests: { sent: 10 }, responses: { sent: 8 } });
});

test('prints nothing after a lost connection, which has no counters', () => {
  expect(travelledIn(counted({}), counted({}), { messages: 20, answers: 20 }, false)).toBe(null);
  expect(travelledIn(counted({ calls: 9 }), counted({ calls: 3 }), { messages: 1, answers: 1 }, false)).toBe(
    null,
  );
});
