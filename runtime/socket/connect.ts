/** connect(): a socket to a server, over the channel of its address. */

import { clientChannel } from '../client/channel.ts';
import type { ChannelOptions } from '../client/channel-options.ts';
import type { Channel } from '../client/channel-type.ts';
import { createClient } from '../client/client.ts';
import { checkedTimeMs, checkNames } from '../core/options.ts';
import { channelFor, type SocketChannel } from './channels.ts';
import { connectError, type Place } from './errors.ts';
import { closeHoldMs } from './limits.ts';
import { Line, type LineOwner } from './line.ts';
import { addressText, endpointOf, noEndpoint, type SocketAddress } from './place.ts';
import { socketService } from './segment.ts';
import { Socket, socketControl } from './socket.ts';
import type { SocketOptions, SocketOwner } from './socket-type.ts';

/** Options of connect(). */
export interface ConnectOptions extends SocketOptions {
  /**
   * Options of the channel: TLS, credentials, fabrics and so on. Sockets with the same options object and the
   * same address share a channel. This option cannot be combined with a channel.
   */
  channel?: ChannelOptions;
  /** Milliseconds after which an attempt fails with ETIMEDOUT. Default: `connectTimeoutMs` of the channel. */
  connectTimeoutMs?: number;
  /** Sets a timeout as `setTimeout()` does, in milliseconds from the start of the attempt. */
  timeout?: number;
}

const optionNames: readonly (keyof ConnectOptions)[] = [
  'allowHalfOpen',
  'highWaterMark',
  'readableHighWaterMark',
  'writableHighWaterMark',
  'signal',
  'onread',
  'writesStay',
  'channel',
  'connectTimeoutMs',
  'timeout',
];

/** The use of a channel by the stream of one socket, until the stream has ended on both sides. */
class Use implements LineOwner, SocketOwner {
  readonly cancels = true;
  readonly #channel: SocketChannel;
  #holds = true;
  #over = false;

  constructor(channel: SocketChannel) {
    this.#channel = channel;
    channel.enter();
    channel.hold(1);
  }

  onRef(isReferenced: boolean): void {
    if (this.#over || this.#holds === isReferenced) return;
    this.#holds = isReferenced;
    this.#channel.hold(isReferenced ? 1 : -1);
  }

  onOrphaned(): void {
    // Keeps the process alive so that the peer learns of the end. The process is kept alive for a limited
    // time only, because the peer may not answer.
    setTimeout(() => this.onRef(false), closeHoldMs).unref();
  }

  onOver(refused: boolean): void {
    if (this.#over) return;
    this.onRef(false);
    this.#over = true;
    this.#channel.leave(refused);
  }
}

function placeOf(address: string): Place {
  const { address: host, port } = endpointOf(address);
  return { address: host ?? address.replace(/^unix:/, ''), port };
}

/**
 * Connects to a server of sockets and returns the socket at once. The socket emits `connect` when the server
 * has accepted the connection. Sockets to the same address share a session. `address` is `host:port`,
 * `unix:/path`, `{ host, port }`, `{ path }` or a channel, which may also be used for calls. `listener` is
 * added for `connect`. Throws for invalid addresses and options; all other errors are events.
 */
export function connect(
  address: SocketAddress | Channel,
  options: ConnectOptions | (() => void) = {},
  listener?: () => void,
): Socket {
  if (typeof options === 'function') return connect(address, {}, options);
  checkNames('connect', options, optionNames);
  const { channel: channelOptions, connectTimeoutMs, timeout, ...socketOptions } = options;
  if (connectTimeoutMs !== undefined) checkedTimeMs('connect: connectTimeoutMs', connectTimeoutMs);
  const isChannel = typeof address === 'object' && 'ready' in address;
  const target = isChannel ? address : addressText(address, 'localhost');
  const shared = channelFor(target, channelOptions);
  const use = new Use(shared);
  const line = new Line(use, false);
  const place = placeOf(isChannel ? address.address : (target as string));
  const socket = new Socket(line, use, place, socketOptions);
  if (timeout !== undefined) socket.setTimeout(timeout);
  if (listener !== undefined) socket.once('connect', listener);
  const connected = (): void => {
    clearTimeout(timer);
    line.onOpen();
    const peer = clientChannel('connect', shared.channel).connection?.server;
    socketControl().connected(socket, {
      remote: endpointOf(peer?.address ?? shared.channel.address),
      local: noEndpoint,
      peer,
    });
  };
  const timer =
    connectTimeoutMs === undefined
      ? undefined
      : setTimeout(() => {
          if (socket.connecting) socket.destroy(connectError(place, undefined, 'ETIMEDOUT'));
        }, connectTimeoutMs).unref();
  const client = createClient(socketService, shared.channel);
  // The stream is opened later, so that the caller can add listeners before any event.
  process.nextTick(() => {
    if (socket.destroyed) {
      use.onOver(false);
      return;
    }
    const segments = client.connect(line.outlet, { onHeader: connected });
    line.start(segments[Symbol.asyncIterator]());
  });
  return socket;
}
