/**
 * The carriers of a listening end. One carrier at a time takes new connections. When the other side accepts
 * no more connections on this carrier, or is lost, the next connection opens a new carrier.
 */
import type { Socket } from 'node:net';
import { createChannel } from '../../runtime/client/channel.ts';
import type { ChannelOptions } from '../../runtime/client/channel-options.ts';
import type { Channel } from '../../runtime/client/channel-type.ts';
import { createClient } from '../../runtime/client/client.ts';
import { Carrier } from './carrier.ts';
import type { Report } from './conduit.ts';
import type { RelayCounts } from './counts.ts';
import { TunnelsDefinition } from './gen/rdma_rpc/tunnel.rdma.ts';

export class NearCarriers {
  readonly #open: () => Channel;
  readonly #counts: RelayCounts;
  readonly #report: Report;
  /** Each carrier with the objects that `close()` needs. */
  readonly #carriers = new Map<Carrier, { readonly channel: Channel; readonly over: Promise<void> }>();
  #current: Carrier | undefined;
  /** The channel for the first carrier. */
  #spare: Channel | undefined;

  /** Throws for invalid addresses and options. Connects to nothing yet. */
  constructor(to: string, options: ChannelOptions, counts: RelayCounts, report: Report) {
    this.#open = () => createChannel(to, options);
    this.#spare = this.#open();
    this.#counts = counts;
    this.#report = report;
  }

  carry(program: Socket): void {
    this.#current ??= this.#connect();
    this.#current.carry(program);
  }

  /**
   * Ends the carriers, when all connections are closed. Resolves when the other side has all that was sent,
   * because the last bytes of a connection may still be on their way.
   */
  async close(): Promise<void> {
    for (const [carrier, { channel }] of this.#carriers) {
      carrier.drain();
      // A carrier that the other side has not accepted has carried no data, and may never be accepted.
      if (!carrier.open) void channel.close();
    }
    await Promise.all([...this.#carriers.values()].map(({ over }) => over));
    await this.#spare?.close();
  }

  /** Ends the carriers at once. */
  destroy(): void {
    for (const { channel } of this.#carriers.values()) void channel.close();
  }

  /**
   * Opens a carrier with its own channel, so that it does not wait for the retry pauses of another channel.
   */
  #connect(): Carrier {
    const channel = this.#spare ?? this.#open();
    this.#spare = undefined;
    const carrier: Carrier = new Carrier({
      counts: this.#counts,
      report: this.#report,
      onAway: () => this.#leave(carrier),
      onOver: () => this.#leave(carrier),
    });
    const onHeader = (): void => {
      carrier.open = true;
    };
    const over = carrier.read(createClient(TunnelsDefinition, channel).carry(carrier, { onHeader }));
    const closed = over.then(() => {
      this.#carriers.delete(carrier);
      return channel.close();
    });
    this.#carriers.set(carrier, { channel, over: closed });
    return carrier;
  }

  #leave(carrier: Carrier): void {
    if (this.#current === carrier) this.#current = undefined;
  }
}
