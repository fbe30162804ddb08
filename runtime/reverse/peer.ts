/**
 * A client that serves calls of its server. It has a channel whose only connection is the second session of
 * the client's connection. The file calling.ts creates it when that session is up, on the server's JS thread.
 */
import { ClientChannel } from '../client/channel.ts';
import { Turns } from '../client/connections/turns.ts';
import { discardSession, type Prepared } from '../control/handshake/session-setup.ts';
import { unavailable } from '../core/errors/failure.ts';
import type { KnownPeer } from '../core/peer.ts';
import { PeerLink } from './peer-link.ts';
import type { Peer } from './reverse-type.ts';

export class RpcPeer implements Peer {
  readonly name: string;
  readonly info: KnownPeer;
  readonly channel: ClientChannel;
  readonly #prepared: Prepared;
  readonly #link: PeerLink;
  /** True when the channel owns the session. */
  #taken = false;
  #gone = '';

  /**
   * `prepared` is a connected session, which the peer owns from now on. `onClosed` is called once, when no
   * call is in flight and no more calls will follow.
   */
  constructor(prepared: Prepared, info: KnownPeer, onClosed: (reason: string) => void) {
    this.#prepared = prepared;
    this.info = info;
    this.name = String(info);
    this.#link = new PeerLink((reason) => {
      this.#gone ||= reason;
      onClosed(this.#gone);
    });
    const { fabric } = prepared.context;
    const connection = {
      ...prepared,
      fabric,
      server: info,
      pings: false,
      answersGoaway: false,
      second: undefined,
      memory: undefined,
    };
    this.channel = new ClientChannel(
      {
        address: this.name,
        turns: new Turns(),
        fabrics: [fabric],
        dial: () => Promise.reject(new Error('a client is not dialled')),
        open: async () => {
          if (this.#taken || this.#gone !== '') throw unavailable(this.#gone);
          this.#taken = true;
          return { link: this.#link, connection };
        },
      },
      { inflightMax: prepared.inflightMax, streamsMax: prepared.streamsMax },
    );
  }

  toString(): string {
    return this.name;
  }

  get connected(): boolean {
    return this.#gone === '';
  }

  /** Stops new calls, and closes the channel after the last response. */
  drain(why: string): void {
    this.#gone ||= why;
    this.#link.drain(why);
  }

  /** Closes the channel now. Calls in flight fail. Resolves when all resources are released. */
  async end(why: string): Promise<void> {
    this.#gone ||= why;
    this.#link.end(why);
    await this.channel.closeFor(this.#gone, this.#gone);
    if (this.#taken) return;
    this.#taken = true;
    discardSession(this.#prepared, why);
  }
}
