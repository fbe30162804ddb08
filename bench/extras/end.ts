/**
 * One of the two processes of a row: `node end.js server|client <row> <socket>`. The client starts to call as
 * soon as it is connected, and answers each request with the number of calls made so far. A process runs one
 * row only, as a program would: V8 compiles calls of several kinds differently. Started by main.ts.
 */
import {
  type CallOptions,
  createChannel,
  createClient,
  createServer,
  type Interceptor,
  type Metadata,
  type MetadataInit,
} from 'rdma-rpc';
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

async function serve(row: ExtrasRow, socket: string): Promise<void> {
  const server = createServer().use(...passing(row.serverInterceptors));
  server.add(ExtrasDefinition, {
    echo: async (request, context) => {
      if (row.metadata && row.reads) readAll(context.metadata);
      if (row.trailer) for (let i = 0; i < keys.length; i++) context.trailer.set(keys[i]!, texts[i]!);
      return { payload: request.payload, id: request.id };
    },
    echoNested: async ({ items }) => ({ items }),
    echoMap: async ({ entries }) => ({ entries }),
  });
  await server.listen(`unix:${socket}`);
  process.on('message', () => server.shutdown({ graceMs: 0 }).then(() => process.exit(0)));
}

/** The options that the row's calls are given beside the message. */
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

/** As programs write metadata: a new object for each call, whose values may differ each time. */
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

const small: SmallInit = { payload: new Uint8Array(32), id: 1 };
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

function connect(row: ExtrasRow, socket: string): void {
  const channel = createChannel(`unix:${socket}`, {
    timeoutMs,
    interceptors: passing(row.clientInterceptors),
  });
  const client = createClient(ExtrasDefinition, channel);
  const options = optionsOf(row);
  const call = {
    small: () => client.echo(small, options?.()),
    nested: () => client.echoNested(nested),
    map: () => client.echoMap(map),
  }[row.message];
  let calls = 0;
  let done = false;
  const work = async (): Promise<void> => {
    while (!done) {
      await call();
      calls++;
    }
  };
  const workers = Array.from({ length: row.inFlight }, work);
  process.on('message', async (message) => {
    if (message !== 'stop') return void process.send?.(calls);
    done = true;
    await Promise.all(workers);
    await channel.close();
    process.exit(0);
  });
}

const [, , role, name = '', socket = ''] = process.argv;
process.on('disconnect', () => process.exit(1));
if (role === 'server') await serve(rowOf(name), socket);
else connect(rowOf(name), socket);
process.send?.('ready');
