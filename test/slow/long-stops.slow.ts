/**
 * SIGSTOP of a side for seconds, with mixed traffic: npm run test:slow. RDMA_RPC_STOP_MS=60000 for stops of
 * another length.
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

describe('a process that is stopped for long', () => {
  test.each(stops.flatMap((stopMs) => [['server', stopMs] as const, ['client', stopMs] as const]))(
    'the %s, for %d ms',
    async (side, stopMs) => {
      server = await ServerProcess.start();
      expectNobodyHurt(await live(server, { stops: side, stopMs, runMs: 500, ms: stopMs, bytes: 200_000 }));
    },
  );
});
