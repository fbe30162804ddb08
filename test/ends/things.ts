/**
 * Opens the things that a process or a worker of the table of ends has open when it ends, by name. Each entry
 * opens its thing and returns a function that ends whatever keeps a process alive by design (a listening
 * server, calls in flight). After that call, the process ends by itself although nothing has been closed.
 * cell.ts uses the entries, in separate processes.
 */
import { once } from 'node:events';
import {
  type Channel,
  type ChannelOptions,
  createChannel,
  createClient,
  createInProcessChannel,
  createServer,
  type HandlerContext,
  leaseOf,
  type Server,
} from 'rdma-rpc';
import { connectMemory, type Handle, memoryOf } from 'rdma-rpc/memory';
import { connect, createServer as createSockets } from 'rdma-rpc/socket';
import { Access, openDevice, RecvBatch, SendBatch, SendFlags } from 'rdma-rpc/verbs';
import { serveWorkers } from 'rdma-rpc/workers';
import { echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';

/** Addresses of the server of the table: by port and by path. */
export interface Addresses {
  readonly port: string;
  readonly path: string;
}

/** The value is undefined when the thing keeps no process alive. */
type Finish = (() => unknown) | undefined;

/** These references keep the values from being collected before the end. */
const kept: unknown[] = [];

function open(address: string, options: ChannelOptions = {}): Channel {
  const channel = createChannel(address, options);
  kept.push(channel);
  return channel;
}

/**
 * Makes small calls, one call in segments and one through the arena. Each of these calls uses memory that the
 * other calls do not use.
 */
async function calls(channel: Channel): Promise<void> {
  const { echo } = createClient(EchoDefinition, channel);
  for (const bytes of [10, 5000, 20_000, 300_000]) kept.push(await echo({ payload: new Uint8Array(bytes) }));
}

async function listening(): Promise<{ server: Server; address: string }> {
  const server = createServer().add(EchoDefinition, echoHandlers({ started: 0, aborted: [] }));
  kept.push(server);
  return { server, address: await server.listen('127.0.0.1:0') };
}

export const things: Readonly<Record<string, (to: Addresses) => Promise<Finish>>> = {
  'an idle channel': async ({ port }) => {
    await open(port).ready();
    return undefined;
  },
  'a channel that has been used': async ({ port }) => {
    await calls(open(port));
    return undefined;
  },
  'a channel whose large answers were dropped': async ({ port }) => {
    const { echo } = createClient(EchoDefinition, open(port));
    const payload = new Uint8Array(1 << 20);
    for (let i = 0; i < 12; i += 1) await Promise.all(Array.from({ length: 4 }, () => echo({ payload })));
    return undefined;
  },
  'a channel that connects': async ({ port }) => {
    const ready = open(port).ready();
    ready.catch(() => undefined);
    return () => ready;
  },
  'calls under way': async ({ port }) => {
    const channel = open(port);
    await calls(channel);
    const { behave, echo } = createClient(EchoDefinition, channel);
    const cancelled = new AbortController();
    const options = { signal: cancelled.signal };
    for (let i = 0; i < 8; i += 1) behave({ text: 'hang' }, options).catch(() => undefined);
    for (let i = 0; i < 4; i += 1)
      echo({ payload: new Uint8Array(3_000_000) }, options).catch(() => undefined);
    return () => cancelled.abort();
  },
  streams: async ({ port }) => {
    const cancelled = new AbortController();
    const options = { signal: cancelled.signal };
    const { count, echo } = createClient(StreamsDefinition, open(port));
    const counted = count({ count: 10_000_000, bytes: 3000 }, options)[Symbol.asyncIterator]();
    await counted.next();
    async function* once() {
      yield { number: 1 };
      await new Promise((resolve) => cancelled.signal.addEventListener('abort', resolve));
    }
    const echoed = echo(once(), options)[Symbol.asyncIterator]();
    await echoed.next();
    kept.push(counted, echoed);
    return () => cancelled.abort();
  },
  'a server': async () => {
    const { server } = await listening();
    return () => server.shutdown();
  },
  'a server with a session': async () => {
    const { server, address } = await listening();
    await calls(open(address));
    return () => server.shutdown();
  },
  'a group of workers': async () => {
    const group = await serveWorkers(new URL('./served.js', import.meta.url), {
      address: '127.0.0.1:0',
      workers: 1,
    });
    kept.push(group);
    await calls(open(group.address));
    return () => group.shutdown({ graceMs: 100 });
  },
  'an in-process channel': async () => {
    const log = { started: 0, aborted: [] };
    const channel = createInProcessChannel((server) => server.add(EchoDefinition, echoHandlers(log)));
    kept.push(channel);
    await calls(channel);
    return undefined;
  },
  tcp: async ({ port }) => {
    await calls(open(port, { fabric: 'tcp' }));
    return undefined;
  },
  'shm-fd': async ({ path }) => {
    await calls(open(path, { fabric: 'shm-fd' }));
    return undefined;
  },
  'a sealed channel': async ({ path }) => {
    await calls(open(path, { security: { require: 'sealed' } }));
    return undefined;
  },
  'a lease that is kept': async ({ port }) => {
    const { fetch } = createClient(EchoDefinition, open(port));
    const reply = await fetch({ number: 300_000 });
    kept.push(reply, leaseOf(reply));
    return undefined;
  },
  'remote memory': async () => {
    const server = createServer();
    const memories = memoryOf(server);
    let handle: Handle | undefined;
    server.add(EchoDefinition, {
      echo: (_, context: HandlerContext) => {
        const exposure = memories.of(context)!.expose(new ArrayBuffer(100_000), { read: true });
        kept.push(exposure);
        ({ handle } = exposure);
        return {};
      },
    });
    const channel = open(await server.listen('127.0.0.1:0'));
    const memory = await connectMemory(channel);
    await createClient(EchoDefinition, channel).echo({});
    const remote = await memory.open(handle!);
    await remote.read(new Uint8Array(100_000));
    kept.push(server, memories, memory, remote, memory.alloc(5000));
    return () => server.shutdown({ graceMs: 0 });
  },
  'verbs objects': async () => {
    const made = (['connect', 'accept'] as const).map((role) => {
      const device = openDevice('tcp');
      const pd = device.allocPd();
      const cq = device.createCq();
      const mr = pd.regMr(pd.allocBuffer(4096), Access.localWrite | Access.remoteRead);
      return { device, pd, cq, mr, qp: pd.createQp({ type: 'rc', cq, role }) };
    });
    const [a, b] = made;
    await Promise.all([a!.qp.connect(b!.qp.address), b!.qp.accept(a!.qp.address)]);
    b!.qp.postRecv(new RecvBatch(1).recv(1, b!.mr));
    a!.qp.post(new SendBatch(1).send(1, SendFlags.signaled).sge(a!.mr, 0, 5));
    kept.push(made);
    return undefined;
  },
  'sockets of both sides': async () => {
    const server = createSockets((socket) => {
      kept.push(socket.on('error', () => undefined));
      socket.pipe(socket);
    });
    await once(server.listen('127.0.0.1:0'), 'listening');
    const socket = connect(server.where!).on('error', () => undefined);
    kept.push(server, socket);
    socket.write(new Uint8Array(100_000));
    await once(socket, 'data');
    return () => {
      socket.destroy();
      server.close();
    };
  },
};
