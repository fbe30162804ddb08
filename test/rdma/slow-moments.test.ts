/**
 * Tests two RDMA devices, and one side that is slow for a moment. Half of the mixed traffic is cancelled. The
 * test does the same as test/slow, but slowly enough for a guest.
 */
import { afterEach, describe, test } from 'vitest';
import { expectNobodyHurt, live } from '../slow/slow-moments.ts';
import { clientDevice, endAll, over, patient, startServer } from './pair.ts';

afterEach(endAll);

const channel = patient(over(clientDevice));

describe('a server whose thread is busy', () => {
  test.each([60, 500])('for %d ms at a time costs no other calls', async (busyMs) => {
    expectNobodyHurt(await live(await startServer(), { busyMs, ms: 10_000, bytes: 50_000, channel }));
  });
});

describe('SIGSTOP', () => {
  test.each([
    ['server', 300],
    ['server', 5000],
    ['client', 300],
    ['client', 5000],
  ] as const)('stops the %s for %d ms at a time, which costs no other calls', async (stops, stopMs) => {
    const moment = { stops, stopMs, runMs: 1000, ms: 10_000, bytes: 50_000, channel };
    expectNobodyHurt(await live(await startServer(), moment));
  });
});
