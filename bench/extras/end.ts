/**
 * One of the two processes of a row: `node end.js server|client <row> <socket>`. The caller, which is the
 * client in most rows, starts to call as soon as it is connected. It answers each request of the parent
 * process with the number of calls made so far. A process runs only one row, as a program would, because V8
 * compiles calls of several kinds differently. main.ts starts this program.
 */
import {
  type CallOptions,
  type Client,
  createChannel,
  createClient,
  createServer,
  type Handlers,
  type Interceptor,
  leaseOf,
  type Metadata,
  type MetadataInit,
} from 'rdma-rpc';
import { type Peers, peersOf, serveReverse } from 'rdma-rpc/reverse';
import { ExtrasDefinition, type MapInit, type NestedInit, type SmallInit } from './gen/extras.rdma.ts';
import { type ExtrasRow, rowOf } from './rows.ts';

const timeoutMs = 30_000;
const pass = (): Interceptor => (next) => (request) => next(request);
const passing = (count: number): Interceptor[] => Array.from({ length: count }, pass);
const keys: readonly string[] = Array.from({ length: 8 }, (_, i) => `x-key-${i}`);
const text = (i: number): string => `value ${i}`;
const texts: readonly string[] = keys.map((_, i) => text(i));

function readAll(metadata: Metadata): void {
  for (const key of keys) if (metadata.get(key) === undefined) throw new Error(`${key} is missing`);
}

function handlersOf(row: ExtrasRow): Handlers<typeof ExtrasDefinition> {
  return {
    echo: async (request, context) => {
      if (row.metadata && row.reads) readAll(context.metadata);
      if (row.trailer) for (let i = 0; i < keys.length; i++) context.trailer.set(keys[i]!, texts[i]!);
      return { payload: request.payload, id: request.id };
    },
    echoNested: async ({ items }) => ({ items }),
    echoMap: async ({ entries }) => ({ entries }),
  };
}

async function serve(row: ExtrasRow, socket: string): Promise<void> {
  const server = createServer().use(...passing(row.serverInterceptors));
  const peers = row.isReverse ? peersOf(server) : undefined;
  server.add(ExtrasDefinition, handlersOf(row));
  await server.listen(`unix:${socket}`);
  const end = (): Promise<void> => server.shutdown({ graceMs: 0 });
  if (peers !== undefined) callBack(peers, row, end);
  else process.on('message', () => end().then(() => process.exit(0)));
}

/** The server calls as soon as its client serves. */
function callBack(peers: Peers, row: ExtrasRow, end: () => Promise<void>): void {
  let calls: Calls | undefined;
  peers.once('peer', (peer) => {
    calls = new Calls(peers.client(ExtrasDefinition, peer, { timeoutMs }), row);
  });
  process.on('message', async (message) => {
    if (message !== 'stop') return void process.send?.(calls?.count ?? 0);
    await calls?.end();
    await end();
    process.exit(0);
  });
}

/** Returns the options that the row's calls get beside the message. */
function optionsOf(row: ExtrasRow): (() => CallOptions) | undefined {
  if (row.signal === 'made')
    return () => {
      AbortSignal.timeout(timeoutMs);
      return {};
    };
  if (row.signal === 'timeout') return () => ({ signal: AbortSignal.timeout(timeoutMs) });
  if (row.signal === 'shared') {
    const { signal } = new AbortController();
    return () => ({ signal });
  }
  if (row.metadata) return () => ({ metadata: written(texts) });
  if (row.trailer) return () => ({ onTrailer: readAll });
  return undefined;
}

/** Writes metadata as programs do, with a new object for each call, whose values may differ each time. */
function written([
  a = '',
  b = '',
  c = '',
  d = '',
  e = '',
  f = '',
  g = '',
  h = '',
]: readonly string[]): MetadataInit {
  return {
    'x-key-0': a,
    'x-key-1': b,
    'x-key-2': c,
    'x-key-3': d,
    'x-key-4': e,
    'x-key-5': f,
    'x-key-6': g,
    'x-key-7': h,
  };
}

const nested: NestedInit = {
  items: Array.from({ length: 1000 }, (_, i) => ({
    id: i,
    name: `item ${i}`,
    value: i / 3,
    on: i % 2 === 0,
  })),
};
const map: MapInit = {
  entries: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`x-key-${i}`, text(i)])),
};

/** The calls of a row, from its start to `end()`. */
class Calls {
  count = 0;
  #done = false;
  readonly #workers: Promise<void>[];

  constructor(client: Client<typeof ExtrasDefinition>, row: ExtrasRow) {
    const options = optionsOf(row);
    const small: SmallInit = { payload: new Uint8Array(row.bytes), id: 1 };
    const call = {
      small: () => client.echo(small, options?.()),
      nested: () => client.echoNested(nested),
      map: () => client.echoMap(map),
    }[row.message];
    const work = async (): Promise<void> => {
      while (!this.#done) {
        const answer = await call();
        if (row.bytes > 32) leaseOf(answer)?.release();
        this.count++;
      }
    };
    this.#workers = Array.from({ length: row.inFlight }, work);
  }

  async end(): Promise<void> {
    this.#done = true;
    await Promise.all(this.#workers);
  }
}

function connect(row: ExtrasRow, socket: string): void {
  const channel = createChannel(`unix:${socket}`, {
    timeoutMs,
    interceptors: passing(row.clientInterceptors),
  });
  const calls = row.isReverse ? undefined : new Calls(createClient(ExtrasDefinition, channel), row);
  if (row.isReverse) serveReverse(channel).add(ExtrasDefinition, handlersOf(row));
  process.on('message', async (message) => {
    if (message !== 'stop') return void process.send?.(calls?.count);
    await calls?.end();
    await channel.close();
    process.exit(0);
  });
}

const [, , role, name = '', socket = ''] = process.argv;
process.on('disconnect', () => process.exit(1));
if (role === 'server') await serve(rowOf(name), socket);
else connect(rowOf(name), socket);
process.send?.('ready');
