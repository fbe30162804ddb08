/**
 * Counts what happens to the connections of a channel, for its metrics. The connections of a channel own this
 * object and use it on their JS thread. Calls cost nothing here, because their session counts them anyway.
 */
import type { ChannelTotals } from '../../core/channel-totals.ts';

/** A connection with the number of calls that its session has made. */
interface Counted {
  readonly session: { readonly calls: number };
}

export class Totals implements ChannelTotals {
  connects = 0;
  reconnects = 0;
  connectFailures = 0;
  drains = 0;
  losses = 0;
  #ended = 0;
  #picks = 0;
  readonly #links = new Set<Counted>();
  /** The endpoints that had a connection. */
  readonly #known = new WeakSet<object>();

  get picks(): number {
    let sum = this.#ended;
    for (const { session } of this.#links) sum += session.calls;
    // A session subtracts the streams that it could not open from its count. A total must never shrink,
    // because metrics systems take a smaller value for a restart.
    this.#picks = Math.max(this.#picks, sum);
    return this.#picks;
  }

  /** Returns a copy of the current totals. */
  get now(): ChannelTotals {
    const { picks, connects, reconnects, connectFailures, drains, losses } = this;
    return { picks, connects, reconnects, connectFailures, drains, losses };
  }

  /** Runs when the address of this endpoint was connected. */
  connected(endpoint: object): void {
    ++this.connects;
    if (this.#known.has(endpoint)) ++this.reconnects;
    this.#known.add(endpoint);
  }

  /**
   * Runs when a connection takes no more calls. `ours` is true when this side ends the connection. A
   * connection that the server refused after its handshake counts as a failed attempt.
   */
  left(link: { readonly draining: boolean; readonly unserved: boolean }, ours: boolean): void {
    if (link.draining) ++this.drains;
    else if (link.unserved) ++this.connectFailures;
    else if (!ours) ++this.losses;
  }

  add(link: Counted): void {
    this.#links.add(link);
  }

  /** Runs when a connection has ended. */
  remove(link: Counted): void {
    if (this.#links.delete(link)) this.#ended += link.session.calls;
  }
}
