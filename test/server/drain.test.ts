/**
 * Tests servers that shut down under load. No call that a client has made fails, and no call is run twice.
 */
import {
  type Channel,
  createChannel,
  createClient,
  createServer,
  type Server,
  type ServerOptions,
  Status,
} from 'rdma-rpc';
import { afterEach, expect, test } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

interface Served {
  readonly server: Server;
  readonly address: string;
  /** Numbers of the requests that this server has run. */
  readonly ran: number[];
}

async function serve(options: ServerOptions = {}): Promise<Served> {
  const ran: number[] = [];
  const server = createServer(options).add(EchoDefinition, {
    echo: (request) => {
      ran.push(request.number);
      return request;
    },
    // This call takes a few event-loop iterations, and its payload travels by READ and WRITE.
    behave: async (request) => {
      ran.push(request.number);
      for (let i = 0; i < 5; ++i) await new Promise((resolve) => setImmediate(resolve));
      return { number: request.number, payload: request.payload.slice() };
    },
  });
  const address = await server.listen('127.0.0.1:0');
  open.push({ close: () => server.shutdown({ graceMs: 0 }) });
  return { server, address, ran };
}

/** Eight callers continue until they are told to stop. `settled` counts their calls. */
function load(channel: Channel) {
  const client = createClient(EchoDefinition, channel, { '*': { timeoutMs: 60_000 } });
  const errors: unknown[] = [];
  const state = { stop: false, settled: 0 };
  let next = 0;
  const payload = new Uint8Array(50_000);
  const caller = async (): Promise<void> => {
    while (!state.stop) {
      const number = next++;
      try {
        const answer = await (number % 4 === 0
          ? client.behave({ number, payload })
          : client.echo({ number }));
        expect(answer.number).toBe(number);
      } catch (error) {
        errors.push(error);
        // A call that fails at once would otherwise leave no time to the event loop.
        await new Promise((resolve) => setImmediate(resolve));
      }
      ++state.settled;
    }
  };
  const ended = Promise.all(Array.from({ length: 8 }, caller));
  return {
    errors,
    /** Resolves when this number of further calls has settled. */
    more: async (count: number): Promise<void> => {
      const goal = state.settled + count;
      while (state.settled < goal) await new Promise((resolve) => setImmediate(resolve));
    },
    /** Resolves with the number of calls. */
    end: async (): Promise<number> => {
      state.stop = true;
      await ended;
      return next;
    },
  };
}

test('when one of two servers shuts down, every call is answered, and each handler runs once', async () => {
  const [first, second] = [await serve(), await serve()];
  const channel = createChannel([first.address, second.address]);
  open.push(channel);
  const calls = load(channel);
  await calls.more(500);
  expect(first.ran.length).toBeGreaterThan(0);
  expect(second.ran.length).toBeGreaterThan(0);
  await first.server.shutdown({ graceMs: 60_000 });
  const before = first.ran.length;
  await calls.more(500);
  const made = await calls.end();
  expect(calls.errors).toEqual([]);
  expect(first.ran.length).toBe(before);
  expect([...first.ran, ...second.ran].sort((a, b) => a - b)).toEqual(
    Array.from({ length: made }, (_, i) => i),
  );
});

test('when connections reach their age again and again, every call is answered, and each handler runs once', async () => {
  let connections = 0;
  const { address, ran } = await serve({ connectionAgeMaxMs: 20, log: () => ++connections });
  const channel = createChannel(address);
  open.push(channel);
  const calls = load(channel);
  while (connections < 8) await calls.more(1);
  const made = await calls.end();
  expect(calls.errors).toEqual([]);
  expect(ran.sort((a, b) => a - b)).toEqual(Array.from({ length: made }, (_, i) => i));
});

test('when the only server shuts down, calls are answered, or fail as never run', async () => {
  const { server, address, ran } = await serve();
  const channel = createChannel(address);
  open.push(channel);
  const calls = load(channel);
  await calls.more(200);
  await server.shutdown({ graceMs: 60_000 });
  const made = await calls.end();
  for (const error of calls.errors)
    expect(error).toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
  expect(ran.length + calls.errors.length).toBe(made);
});
