/**
 * The carriers of a listening end. One carrier at a time takes new connections. When the other side accepts
 * no more connections on it or is lost, the next connection opens a new carrier.
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
  readonly #carriers = new Map<Carrier, Channel>();
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

  async close(): Promise<void> {
    await Promise.all([...this.#carriers.values(), this.#spare].map((channel) => channel?.close()));
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
      onOver: () => {
        this.#leave(carrier);
        this.#carriers.delete(carrier);
        void channel.close();
      },
    });
    this.#carriers.set(carrier, channel);
    const onHeader = (): void => {
      carrier.open = true;
    };
    void carrier.read(createClient(TunnelsDefinition, channel).carry(carrier, { onHeader }));
    return carrier;
  }

  #leave(carrier: Carrier): void {
    if (this.#current === carrier) this.#current = undefined;
  }
}
