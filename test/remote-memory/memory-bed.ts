/**
 * Opens a server and a client with remote memory between them. The tests use it over each fabric that works
 * within one process.
 */
import {
  type Channel,
  type ChannelOptions,
  createClient,
  type HandlerContext,
  type RpcError,
  type ServerOptions,
} from 'rdma-rpc';
import {
  connectMemory,
  type ExposeOptions,
  type Exposure,
  type Memories,
  type MemoryOptions,
  memoryOf,
  type PeerMemory,
  type Remote,
} from 'rdma-rpc/memory';
import { openPair, type PairWay } from '../runtime/pair.ts';
import { type Goods, type GoodsInit, TraderDefinition } from './gen/trade.rdma.ts';

export const memoryWays: readonly PairWay[] = ['sim', 'shm', 'tcp'];

export type OnTrade = (goods: Goods, memory: PeerMemory | undefined) => GoodsInit | Promise<GoodsInit>;

export interface MemoryBed {
  readonly channel: Channel;
  readonly memories: Memories;
  /** The memory of the client, and the server's memory for this client. */
  readonly client: PeerMemory;
  readonly server: PeerMemory;
  /** Calls the server, whose handler is `onTrade`. */
  trade(goods: GoodsInit, onTrade: OnTrade): Promise<Goods>;
  close(): Promise<void>;
}

export interface BedOptions {
  readonly server?: ServerOptions;
  readonly channel?: ChannelOptions;
  readonly memory?: MemoryOptions;
}

export interface Market {
  readonly channel: Channel;
  readonly memories: Memories;
  trade(goods: GoodsInit, onTrade: OnTrade): Promise<Goods>;
  close(): Promise<void>;
}

/** Opens both sides, without remote memory yet. */
export async function openMarket(way: PairWay, options: BedOptions = {}): Promise<Market> {
  let onTrade: OnTrade = () => ({});
  let memories!: Memories;
  const { channel, close } = await openPair(
    way,
    (server) => {
      memories = memoryOf(server, options.memory);
      server.add(TraderDefinition, {
        trade: (goods: Goods, context: HandlerContext) => onTrade(goods, memories.of(context)),
      });
    },
    options.server,
    options.channel,
  );
  const trader = createClient(TraderDefinition, channel);
  const trade = (goods: GoodsInit, how: OnTrade): Promise<Goods> => {
    onTrade = how;
    return trader.trade(goods);
  };
  return { channel, memories, trade, close };
}

export async function openMemory(way: PairWay, options: BedOptions = {}): Promise<MemoryBed> {
  const market = await openMarket(way, options);
  const client = await connectMemory(market.channel, options.memory);
  let server: PeerMemory | undefined;
  await market.trade({}, (_, memory) => {
    server = memory;
    return {};
  });
  return { ...market, client, server: server! };
}

export type Direction = 'from server' | 'from client';
export const directions: readonly Direction[] = ['from server', 'from client'];

/** Exposes memory of one side and opens it on the other side, by a handle in a message. */
export async function lend(
  bed: MemoryBed,
  direction: Direction,
  buffer: ArrayBuffer | SharedArrayBuffer | ArrayBufferView,
  options: ExposeOptions,
): Promise<{ exposure: Exposure; remote: Remote }> {
  if (direction === 'from client') {
    const exposure = bed.client.expose(buffer, options);
    let remote: Remote | undefined;
    await bed.trade({ memory: exposure.handle }, async ({ memory }, own) => {
      remote = await own!.open(memory!);
      return {};
    });
    return { exposure, remote: remote! };
  }
  let exposure: Exposure | undefined;
  const { memory } = await bed.trade({}, (_, own) => {
    exposure = own!.expose(buffer, options);
    return { memory: exposure.handle };
  });
  return { exposure: exposure!, remote: await bed.client.open(memory!) };
}

/** Resolves to the error of a promise that must reject. */
export async function caught(promise: Promise<unknown>): Promise<RpcError> {
  try {
    await promise;
  } catch (error) {
    return error as RpcError;
  }
  throw new Error('it ended well');
}
