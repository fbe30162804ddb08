/**
 * rdma-rpc as the benchmark of streams measures it, with the public API and generated code. Large items are
 * sent from registered memory. Both processes use this file.
 */
import { allocBuffer, createChannel, createClient, createServer, leaseOf } from 'rdma-rpc';
import { type Item, StreamsDefinition } from './gen/stream.rdma.ts';
import type { StreamClient, StreamPeer, StreamServer } from './peer.ts';

/** A smaller item travels in a slot or is copied. */
const registeredMin = 16 * 1024;

const memory = (bytes: number): Uint8Array =>
  bytes < registeredMin ? new Uint8Array(bytes) : allocBuffer(bytes).bytes;

function release(received: Item): void {
  if (received.payload.byteLength >= registeredMin) leaseOf(received)?.release();
}

async function serve(socket: string): Promise<StreamServer> {
  const server = createServer().add(StreamsDefinition, {
    *download({ bytes }) {
      // The same message is sent again and again, because the stream is measured and not the creation of
      // messages.
      const one = { payload: memory(bytes).fill(7) };
      for (;;) yield one;
    },
    async upload(requests) {
      let items = 0;
      for await (const request of requests) {
        ++items;
        release(request);
      }
      return { items: BigInt(items) };
    },
    async *chat(requests) {
      for await (const request of requests) yield request;
    },
  });
  await server.listen(`unix:${socket}`);
  return { close: () => server.shutdown({ graceMs: 100 }) };
}

/** Returns an iterable without a generator behind it, whose `next` is as cheap as possible. */
function endless(next: () => Uint8Array | undefined): Iterable<{ payload: Uint8Array }> {
  return {
    [Symbol.iterator]: () => ({
      next() {
        const payload = next();
        return payload === undefined ? { done: true, value: undefined } : { done: false, value: { payload } };
      },
    }),
  };
}

async function connect(socket: string): Promise<StreamClient> {
  const channel = createChannel(`unix:${socket}`);
  const client = createClient(StreamsDefinition, channel);
  await channel.ready();
  return {
    buffer: memory,
    async download(bytes, onItem) {
      for await (const received of client.download({ bytes })) {
        const enough = onItem(received.payload);
        release(received);
        if (enough) return;
      }
    },
    async upload(next) {
      return Number((await client.upload(endless(next))).items);
    },
    async chat(next, onItem) {
      let answered: () => void = () => undefined;
      async function* questions() {
        for (let payload = next(); payload !== undefined; payload = next()) {
          const answer = new Promise<void>((resolve) => {
            answered = resolve;
          });
          yield { payload };
          await answer;
        }
      }
      for await (const received of client.chat(questions())) {
        onItem(received.payload);
        answered();
      }
    },
    close: () => channel.close(),
  };
}

export const ours: StreamPeer = { name: 'rdma-rpc', fabric: 'shm', serve, connect };
