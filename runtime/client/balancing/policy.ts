/**
 * What a load-balancing policy is: the choice of the connection for the next call, among those that take
 * calls. A policy sees a connection as an address with a weight and a number of calls in flight. Used by the
 * connections of a channel, on its JS thread, for each call of a channel with several addresses.
 */

/** An address of the channel's list. */
export interface Listed {
  readonly address: string;
  /** Share of the calls in relation to the weights of the others; 1 when the list has none. */
  readonly weight: number;
  /** Where the server is; undefined when the list does not say. */
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
  /** Called when the list, or the connections that take calls, have changed. */
  update(ready: readonly C[], listed: readonly Listed[]): void;
  /**
   * Returns the connection for a call with this metadata in wire form; undefined when none has room.
   */
  pick(room: Room<C>, metadata: Uint8Array | undefined): C | undefined;
}

/** Returns the first connection with room from index `first` on; undefined when none has. */
export function firstWithRoom<C>(ready: readonly C[], first: number, room: Room<C>): C | undefined {
  for (let i = 0; i < ready.length; ++i) {
    const candidate = ready[(first + i) % ready.length]!;
    if (room(candidate)) return candidate;
  }
  return undefined;
}
