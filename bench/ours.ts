/**
 * rdma-rpc as the benchmark measures it. It uses the public API and generated code, with a deadline on every
 * call. Large requests are sent from registered memory, and large answers are received into leases that are
 * reused. Both processes use this file.
 */
import { join } from 'node:path';
import {
  allocBuffer,
  type CallOptions,
  type Channel,
  type ChannelOptions,
  configure,
  createChannel,
  createClient,
  createServer,
  type Lease,
  tlsFiles,
} from 'rdma-rpc';
import { BenchDefinition } from './gen/bench.rdma.ts';
import type { BenchClient, BenchHandlers, BenchServer, EndOptions, Peer } from './peer.ts';

const timeoutMs = 30_000;
/** Number of bytes of a message beside its payload: two tags, a length and an id. */
const overheadBytes = 64;
/** A smaller message travels in a slot, wherever its memory lies. */
const registeredMin = 16 * 1024;
/** Eight payloads of 16 MiB in each direction, on either side, need this arena. */
const arenaBytes = 384 * 1024 * 1024;
/** Size of a message with the largest payload. */
const messageMaxBytes = 64 * 1024 * 1024 + overheadBytes;
/** All connections come from one client here. */
const sessionsPerPeerMax = 1024;

let files: ReturnType<typeof tlsFiles> | undefined;

/** Returns the certificates of both sides, where the peer has TLS. They are read once. */
function tlsOf({ tls }: EndOptions): { tls?: ReturnType<typeof tlsFiles> } {
  if (tls === undefined) return {};
  const path = (name: string): string => join(tls, `${name}.pem`);
  files ??= tlsFiles({ cert: path('cert'), key: path('key'), ca: path('ca') });
  return { tls: files };
}

function addressOf({ socket, port }: EndOptions): string {
  return port === undefined ? `unix:${socket}` : `127.0.0.1:${port}`;
}

async function serve(options: EndOptions, handlers: BenchHandlers): Promise<BenchServer> {
  configure({ polling: options.polling, arenaBytes });
  const server = createServer({
    messageMaxBytes,
    sessionsPerPeerMax,
    // This is the default now, but older builds (`--against`) need the option.
    requestMemory: 'call',
    ...tlsOf(options),
  }).add(BenchDefinition, {
    echo: (request) => handlers.echo(request),
    put: (request) => handlers.put(request),
  });
  const address = await server.listen(addressOf(options));
  return {
    port: options.port === undefined ? undefined : Number(address.slice(address.lastIndexOf(':') + 1)),
    close: () => server.shutdown({ graceMs: 100 }),
  };
}

/** The memory of one worker, in which its requests are created and its answers arrive. */
interface WorkerMemory {
  readonly request: Lease;
  readonly answer: CallOptions;
}

let configured = false;

async function connect(
  options: EndOptions,
  shared: 'shm' | 'shm-fd',
  security?: ChannelOptions['security'],
): Promise<BenchClient> {
  // Configure once, because all connections of the process share a context.
  if (!configured) configure({ polling: options.polling, arenaBytes });
  configured = true;
  const fabric = options.port === undefined ? shared : 'tcp';
  const open = (): Channel =>
    createChannel(addressOf(options), {
      timeoutMs,
      fabric,
      messageMaxBytes,
      ...tlsOf(options),
      ...(security && { security }),
    });
  const channel = open();
  const others: Channel[] = [];
  const client = createClient(BenchDefinition, channel);
  await channel.ready();
  const memories: (WorkerMemory | undefined)[] = [];

  const release = (worker: number): void => {
    const memory = memories[worker];
    memory?.request.release();
    memory?.answer.into?.release();
    memories[worker] = undefined;
  };

  return {
    buffer(worker, bytes) {
      release(worker);
      if (bytes < registeredMin) return new Uint8Array(bytes);
      const request = allocBuffer(bytes, channel);
      memories[worker] = { request, answer: { into: allocBuffer(bytes + overheadBytes, channel) } };
      return request.bytes;
    },
    echo: (message, worker) => client.echo(message, memories[worker]?.answer),
    put: (message) => client.put(message),
    async more(connections) {
      const opened = Array.from({ length: connections }, open);
      others.push(...opened);
      await Promise.all(opened.map((each) => each.ready()));
    },
    async close() {
      for (const worker of memories.keys()) release(worker);
      await Promise.all([channel, ...others].map((each) => each.close()));
    },
  };
}

function over(name: string, fabric: 'shm' | 'shm-fd', security?: ChannelOptions['security']): Peer {
  return { name, fabric, serve, connect: (options) => connect(options, fabric, security) };
}

export const ours: Peer = over('rdma-rpc', 'shm');
/** This is the transport between users and containers of one host. */
export const byDescriptors: Peer = over('shm-fd', 'shm-fd');
/** This peer encrypts and authenticates its calls. */
export const sealed: Peer = { ...over('sealed', 'shm', { require: 'sealed' }), tls: true };
/**
 * TLS on the address, with certificates of both sides. Queue pairs are bound to the TLS connection, but calls
 * are not encrypted.
 */
export const tls: Peer = { ...over('tls', 'shm'), tls: true };
