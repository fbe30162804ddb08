/**
 * A client process for the tests of endings. The process opens streams of every kind to the server at argv[2]
 * over argv[4], reports that, and leaves them open.
 */
import { createChannel, createClient, type Fabric } from 'rdma-rpc';
import { InteropDefinition } from './gen/interop.rdma.ts';

const size = Number(process.argv[3]);
const fabric = process.argv[4] as Fabric;
const client = createClient(InteropDefinition, createChannel(process.argv[2] ?? '', { fabric }));
const payload = () => ({ body: new Uint8Array(Buffer.alloc(size, '1-pattern-')), seed: 1 });
const forever = new Promise<never>(() => undefined);

async function* one<T>(message: T): AsyncGenerator<T> {
  yield message;
  await forever;
}

const responseParameters = Array.from({ length: 1000 }, () => ({ size }));
const first = async (stream: AsyncIterable<unknown>): Promise<unknown> =>
  (await stream[Symbol.asyncIterator]().next()).value;
void client.streamingInputCall(one({ payload: payload() })).catch(() => undefined);
await first(client.streamingOutputCall({ responseParameters }));
await first(client.fullDuplexCall(one({ payload: payload(), responseParameters })));
process.send?.('streams are open');
setInterval(() => undefined, 1000);
