/**
 * Tests that memory, descriptors and registrations of two processes stay constant, between two RDMA devices.
 * The test does the same as npm run test:soak, but slowly enough for a guest. RDMA_RPC_SOAK_MINUTES makes it
 * longer, and prints the figures of each round.
 */
import { afterEach, expect, test } from 'vitest';
import { soak } from '../soak/soak.ts';
import { clientDevice, endAll, over, patient, serverDevice } from './pair.ts';

afterEach(endAll);

const wanted = process.env.RDMA_RPC_SOAK_MINUTES;
const minutes = Number(wanted ?? 0.5);
const log = wanted === undefined ? {} : { log: console.log };

test('memory, descriptors and registrations of both processes stay flat', {
  timeout: 600_000 + minutes * 120_000,
}, async () => {
  const env = { ...process.env, RDMA_RPC_FABRIC: 'verbs', RDMA_RPC_DEVICE: serverDevice };
  const channel = patient(over(clientDevice));
  expect(await soak({ ms: minutes * 60_000, roundMs: 2000, channel, server: { env }, ...log })).toEqual([]);
});
