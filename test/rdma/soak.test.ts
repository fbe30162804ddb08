/**
 * What both processes hold stays flat, between two RDMA devices. As npm run test:soak, at the pace of a
 * guest; RDMA_RPC_SOAK_MINUTES for longer, with what each round came to.
 */
import { afterEach, expect, test } from 'vitest';
import { soak } from '../soak/soak.ts';
import { clientDevice, endAll, over, patient, serverDevice } from './pair.ts';

afterEach(endAll);

const wanted = process.env.RDMA_RPC_SOAK_MINUTES;
const minutes = Number(wanted ?? 0.5);
const log = wanted === undefined ? {} : { log: console.log };

test('memory, descriptors and registrations', { timeout: 600_000 + minutes * 120_000 }, async () => {
  const env = { ...process.env, RDMA_RPC_FABRIC: 'verbs', RDMA_RPC_DEVICE: serverDevice };
  const channel = patient(over(clientDevice));
  expect(await soak({ ms: minutes * 60_000, roundMs: 2000, channel, server: { env }, ...log })).toEqual([]);
});
