/**
 * The interface of load-balancing policies. A policy chooses the connection for the next call among the
 * connections that take calls. It sees each connection as an address with a weight and a number of calls in
 * flight. The connections of a channel with several addresses use it for each call, on the channel's JS
 * thread.
 */

/** An address of the channel's list. */
export interface Listed {
  readonly address: string;
  /** Share of the calls, relative to the weights of the other addresses; 1 when the list gives no weight. */
  readonly weight: number;
  /** The zone of the server; undefined when the list does not give one. */
  readonly zone?: string | undefined;
}

/** A connection that takes calls. */
export interface Candidate extends Listed {
  /** Number of calls and streams in flight over it. */
  readonly load: number;
}

/** Returns whether a connection has a free call slot, or a free stream slot. */
export type Room<C> = (candidate: C) => boolean;

export interface Policy<C extends Candidate> {
  /** Runs when the list of addresses or the set of connections that take calls has changed. */
  update(ready: readonly C[], listed: readonly Listed[]): void;
  /**
   * Returns the connection for a call with this metadata in wire form, or undefined when none has room.
   */
  pick(room: Room<C>, metadata: Uint8Array | undefined): C | undefined;
}

/** Returns the first connection with room, beginning at index `first`, or undefined when none has room. */
export function firstWithRoom<C>(ready: readonly C[], first: number, room: Room<C>): C | undefined {
  for (let i = 0; i < ready.length; ++i) {
    const candidate = ready[(first + i) % ready.length]!;
    if (room(candidate)) return candidate;
  }
  return undefined;
}
