/**
 * The channels of sockets that were connected by address. All sockets to an address share one session, until
 * it has no room for another socket; then a further session is made. A channel is closed when its last socket
 * is gone. After a failed attempt a channel is not used again, so that each connect() makes its own attempt.
 * Each JS thread has one table.
 */
import { type ClientChannel, clientChannel, createChannel } from '../client/channel.ts';
import type { ChannelOptions } from '../client/channel-options.ts';
import type { Channel } from '../client/channel-type.ts';
import { channelLingerMs, socketsPerSession } from './limits.ts';

/** A channel as its sockets see it. */
export interface SocketChannel {
  readonly channel: Channel;
  /** Runs when another socket begins to use the channel. */
  enter(): void;
  /**
   * Runs when a socket is gone. `refused` is true when the server could not be reached or has not accepted
   * the socket.
   */
  leave(refused: boolean): void;
  /** Runs when one of the sockets begins or stops to keep the process alive. */
  hold(more: 1 | -1): void;
}

const none: unique symbol = Symbol('no options');

/** The channels, by options object and address. */
const tables = new Map<ChannelOptions | typeof none, Map<string, SharedChannel[]>>();

class SharedChannel implements SocketChannel {
  readonly channel: ClientChannel;
  readonly #onUnused: () => void;
  #sockets = 0;
  #holds = 0;
  #failed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(address: string, options: ChannelOptions | undefined, onUnused: () => void) {
    const given = { streamsMax: socketsPerSession, ...options };
    this.channel = clientChannel('connect', createChannel(address, given));
    this.channel.keepsAlive = () => this.#holds > 0;
    this.#onUnused = onUnused;
  }

  get hasRoom(): boolean {
    const max = this.channel.connection?.streamsMax ?? this.channel.settings.streamsMax;
    return !this.#failed && this.#sockets < max;
  }

  enter(): void {
    ++this.#sockets;
    clearTimeout(this.#timer);
  }

  leave(refused: boolean): void {
    --this.#sockets;
    if (refused) {
      this.#failed = true;
      this.#onUnused();
    }
    if (this.#sockets > 0) return;
    if (this.#failed) void this.channel.close();
    else this.#timer = setTimeout(() => this.#close(), channelLingerMs).unref();
  }

  hold(more: 1 | -1): void {
    this.#holds += more;
    if (more > 0) this.channel.wake();
  }

  #close(): void {
    this.#onUnused();
    void this.channel.close();
  }
}

/** A channel that belongs to the application, which closes it. */
class GivenChannel implements SocketChannel {
  readonly channel: Channel;

  constructor(channel: Channel) {
    this.channel = channel;
  }

  enter(): void {}
  leave(): void {}
  hold(): void {}
}

/** Returns a channel to `address` with room for another socket. Throws for invalid addresses and options. */
export function channelFor(address: string | Channel, options: ChannelOptions | undefined): SocketChannel {
  if (typeof address !== 'string') return new GivenChannel(address);
  const key = options ?? none;
  let table = tables.get(key);
  if (table === undefined) {
    table = new Map();
    tables.set(key, table);
  }
  const known = table.get(address) ?? [];
  const found = known.find((each) => each.hasRoom);
  if (found !== undefined) return found;
  const made: SharedChannel = new SharedChannel(address, options, () => {
    const left = table.get(address)?.filter((each) => each !== made) ?? [];
    if (left.length > 0) table.set(address, left);
    else table.delete(address);
    if (table.size === 0) tables.delete(key);
  });
  table.set(address, [...known, made]);
  return made;
}
