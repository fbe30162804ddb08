/**
 * rdma-rpc as a program written by the quick start of README.md uses it. It sets no option except the
 * deadline of each call, uses buffers of its own, and returns no memory. For comparison, bench/ours.ts does
 * everything that the guide recommends for memory. Both processes use this file.
 */
import { createChannel, createClient, createServer } from 'rdma-rpc';
import { BenchDefinition } from './gen/bench.rdma.ts';
import { readPayload } from './handlers.ts';
import type { BenchClient, BenchServer, EndOptions, Msg, Peer } from './peer.ts';

/**
 * A time limit in milliseconds. The slowest call of the first second takes less, even on a machine where a
 * fresh page costs 25 us.
 */
const timeoutMs = 10_000;
const empty = new Uint8Array(0);

const addressOf = ({ socket, port }: EndOptions): string =>
  port === undefined ? `unix:${socket}` : `127.0.0.1:${port}`;

async function serve(options: EndOptions): Promise<BenchServer> {
  const server = createServer();
  // These are the handlers of bench/handlers.ts, written as in the quick start.
  server.add(BenchDefinition, {
    echo: (request) => ({ payload: request.payload, id: request.id }),
    put: (request) => ({ payload: empty, id: readPayload(request.payload) }),
  });
  const address = await server.listen(addressOf(options));
  return {
    port: options.port === undefined ? undefined : Number(address.slice(address.lastIndexOf(':') + 1)),
    close: () => server.shutdown({ graceMs: 100 }),
  };
}

/**
 * Connects a client of the benchmark. `message` creates the message that is sent from the payload that the
 * worker keeps.
 */
async function connect(options: EndOptions, message: (kept: Msg) => Msg): Promise<BenchClient> {
  // On one host, a channel chooses shared memory by itself, so only the rows over TCP have to request their
  // fabric.
  const channel = createChannel(
    addressOf(options),
    options.port === undefined ? undefined : { fabric: 'tcp' },
  );
  const client = createClient(BenchDefinition, channel);
  await channel.ready();
  return {
    buffer: (_worker, bytes) => new Uint8Array(bytes),
    echo: (kept) => client.echo(message(kept), { timeoutMs }),
    put: (kept) => client.put(message(kept), { timeoutMs }),
    close: () => channel.close(),
  };
}

/** Sends the same `Uint8Array` again and again. */
export const quickStart: Peer = {
  name: 'quick start',
  fabric: 'shm',
  serve,
  connect: (options) => connect(options, (kept) => kept),
};

/** Creates a new `Uint8Array` for each call, and fills it. */
export const newBuffers: Peer = {
  ...quickStart,
  name: 'quick start, new',
  connect: (options) => connect(options, ({ payload, id }) => ({ payload: payload.slice(), id })),
};
