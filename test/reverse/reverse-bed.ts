/**
 * Opens a server that calls its client, over each fabric that works in one process, for the tests of reverse
 * calls.
 */
import type { Channel, ChannelOptions, Client, Server, ServerOptions } from 'rdma-rpc';
import { type Peer, type Peers, peersOf, type ReverseServer, serveReverse } from 'rdma-rpc/reverse';
import { vi } from 'vitest';
import { type EchoLog, echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openPair, type PairWay } from '../runtime/pair.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { newLog, type StreamLog, streamHandlers } from '../stream/streams-service.ts';

export interface ReverseBed {
  readonly channel: Channel;
  readonly server: Server;
  readonly peers: Peers;
  readonly peer: Peer;
  readonly reverse: ReverseServer;
  /** The services of the client, as the server calls them. */
  readonly echo: Client<typeof EchoDefinition>;
  readonly streams: Client<typeof StreamsDefinition>;
  readonly echoLog: EchoLog;
  readonly streamLog: StreamLog;
  close(): Promise<void>;
}

export async function openReverse(
  way: PairWay,
  serverOptions: ServerOptions = {},
  channelOptions: ChannelOptions = {},
): Promise<ReverseBed> {
  let server!: Server;
  let peers!: Peers;
  const register = (made: Server): void => {
    server = made;
    peers = peersOf(made);
  };
  const { channel, close } = await openPair(way, register, serverOptions, channelOptions);
  const echoLog: EchoLog = { started: 0, aborted: [] };
  const streamLog = newLog();
  const reverse = serveReverse(channel)
    .add(EchoDefinition, echoHandlers(echoLog))
    .add(StreamsDefinition, streamHandlers(streamLog));
  await reverse.ready;
  await vi.waitFor(() => {
    if (peers.all.length !== 1) throw new Error('the client does not serve yet');
  });
  const peer = peers.all[0]!;
  return {
    channel,
    server,
    peers,
    peer,
    reverse,
    echo: peers.client(EchoDefinition, peer),
    streams: peers.client(StreamsDefinition, peer),
    echoLog,
    streamLog,
    close: async () => {
      await reverse.close();
      await close();
    },
  };
}
