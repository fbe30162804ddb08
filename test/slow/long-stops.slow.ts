/**
 * Tests mixed traffic while SIGSTOP stops a side for seconds: npm run test:slow. RDMA_RPC_STOP_MS=60000 sets
 * another length of the stops.
 */
import { afterEach, describe, test } from 'vitest';
import { ServerProcess } from '../runtime/process/processes.ts';
import { expectNobodyHurt, live } from './slow-moments.ts';

let server: ServerProcess | undefined;
afterEach(async () => {
  await server?.kill();
  server = undefined;
});

const given = process.env.RDMA_RPC_STOP_MS;
const stops = given === undefined ? [3000, 10_000, 33_000] : given.split(',').map(Number);

describe('a long SIGSTOP', () => {
  test.each(stops.flatMap((stopMs) => [['server', stopMs] as const, ['client', stopMs] as const]))(
    'stops the %s for %d ms, which costs no other calls',
    async (side, stopMs) => {
      server = await ServerProcess.start();
      expectNobodyHurt(await live(server, { stops: side, stopMs, runMs: 500, ms: stopMs, bytes: 200_000 }));
    },
  );
});
