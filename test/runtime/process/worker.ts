/**
 * Runs as a worker thread of the tests. The worker makes calls until it is terminated, and posts a message as
 * soon as calls of every kind are under way.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { createChannel, createClient, leaseOf } from 'rdma-rpc';
import { EchoDefinition } from '../gen/echo.rdma.ts';

const client = createClient(EchoDefinition, createChannel(workerData as string));
const payload = new Uint8Array(200_000);

async function small(): Promise<never> {
  for (;;) await client.echo({ number: 1 });
}
async function large(): Promise<never> {
  for (;;) leaseOf(await client.echo({ payload }))?.release();
}

await client.echo({});
const endless = [small(), small(), large(), client.behave({ text: 'hang' }, { timeoutMs: 60_000 })];
parentPort?.postMessage('busy');
await Promise.all(endless);
