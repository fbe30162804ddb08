/**
 * Opens a channel to the service of streams, by any way that works within one process, and the common parts
 * of its tests.
 */
import { rmSync } from 'node:fs';
import {
  type Channel,
  type ChannelOptions,
  createChannel,
  createServer,
  type RpcError,
  type Server,
  type ServerOptions,
} from 'rdma-rpc';
import { inProcessChannel } from '../../runtime/in-process.ts';
import { comes } from '../outcomes.ts';
import { fabricOf, inProcessWays, isInProcess, placeOf, socketPath, type Way } from '../runtime/world.ts';
import { StreamsDefinition } from './gen/stream.rdma.ts';
import { newLog, type StreamLog, streamHandlers } from './streams-service.ts';

export interface StreamWorld {
  readonly channel: Channel;
  readonly log: StreamLog;
  /** The value is undefined within one process. */
  readonly server: Server | undefined;
  close(): Promise<void>;
}

export async function openStreams(
  way: Way,
  server: ServerOptions = {},
  channel: ChannelOptions = {},
): Promise<StreamWorld> {
  const log = newLog();
  const handlers = streamHandlers(log);
  if (isInProcess(way)) {
    const local = inProcessChannel(
      (s) => s.add(StreamsDefinition, handlers),
      { ...server, ...channel },
      inProcessWays[way],
    );
    return { channel: local, log, server: undefined, close: () => local.close() };
  }
  const path = socketPath();
  const remote = createServer({ ...fabricOf(way), ...server }).add(StreamsDefinition, handlers);
  const address = await remote.listen(placeOf(way, path));
  const local = createChannel(address, { ...fabricOf(way), ...channel });
  const close = async () => {
    await local.close();
    await remote.shutdown({ graceMs: 0 });
    rmSync(path, { force: true });
  };
  return { channel: local, log, server: remote, close };
}

export function collect<T>(messages: AsyncIterable<T>): Promise<T[]> {
  const collected = async () => {
    const all: T[] = [];
    for await (const message of messages) all.push(message);
    return all;
  };
  return comes(collected(), 'the end of a stream');
}

export async function caught(call: () => Promise<unknown>): Promise<RpcError> {
  try {
    await comes(call(), 'the end of a call');
  } catch (error) {
    return error as RpcError;
  }
  throw new Error('it ended well');
}
