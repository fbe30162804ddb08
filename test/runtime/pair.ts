/**
 * Opens a server with the handlers and interceptors of a test, and a channel to it, over each fabric that
 * works within one process. This file is for tests of features above the session.
 */
import {
  type Channel,
  type ChannelOptions,
  createChannel,
  createServer,
  type Server,
  type ServerOptions,
} from 'rdma-rpc';
import { inProcessChannel } from '../../runtime/in-process.ts';
import { everything } from '../extent.ts';
import { socketPath } from './world.ts';

export type PairWay = 'sim' | 'loopback' | 'shm' | 'shm-fd' | 'tcp';
/** The ways of a brief run: one fabric without native code, and one of each kind of native fabric. */
export const pairWays: readonly PairWay[] = everything
  ? ['sim', 'loopback', 'shm', 'shm-fd', 'tcp']
  : ['loopback', 'shm', 'tcp'];
/**
 * The ways that use native code. Loopback has no counters page, and no arena in which messages wait for
 * memory.
 */
export const nativeWays: readonly PairWay[] = pairWays.filter((way) => way !== 'loopback');

export interface Pair {
  readonly channel: Channel;
  close(): Promise<void>;
}

export async function openPair(
  way: PairWay,
  register: (server: Server) => unknown,
  serverOptions: ServerOptions = {},
  channelOptions: ChannelOptions = {},
): Promise<Pair> {
  if (way === 'sim' || way === 'loopback') {
    const options = { ...serverOptions, ...channelOptions };
    const channel = inProcessChannel((server) => void register(server as Server), options, way);
    return { channel, close: () => channel.close() };
  }
  const server = createServer({ fabric: way, ...serverOptions });
  register(server);
  const channel = createChannel(
    await server.listen(way === 'shm-fd' ? `unix:${socketPath()}` : '127.0.0.1:0'),
    { fabric: way, ...channelOptions },
  );
  const close = async () => {
    await channel.close();
    await server.shutdown({ graceMs: 0 });
  };
  return { channel, close };
}
