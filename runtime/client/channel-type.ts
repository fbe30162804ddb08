/**
 * A channel as applications see it: what createChannel() gives. The class behind it, with what clients and
 * streams need of it, is in channel.ts.
 */
import type { SessionSummary } from '../control/session-summary.ts';
import type { RpcError } from '../core/errors/rpc-error.ts';
import type { FabricName } from '../fabrics.ts';
import type { AddressSummary } from './connections/connections.ts';

/**
 * `idle`: no connection, the next call makes one. `verifying`: a connection that was silent for long is being
 * tried. `failing`: no connection, and the pause before the next attempt is not over.
 */
export type ChannelState = 'idle' | 'connecting' | 'ready' | 'verifying' | 'failing' | 'closed';

/** Told of each change of a channel's state; `error` is why it is `failing`. */
export type ChannelStateListener = (state: ChannelState, error: RpcError | undefined) => void;

/** The way to a service, at one address or several. Connects when the first call needs it. */
export interface Channel extends AsyncDisposable {
  /** As given to createChannel; addresses of a list with commas. */
  readonly address: string;
  readonly state: ChannelState;
  /** Fabric of the current connection, undefined without one. */
  readonly fabric: FabricName | undefined;
  /**
   * What is behind the channel now, undefined without a connection. With several addresses, that of the next
   * call.
   */
  readonly session: SessionSummary | undefined;
  /** The addresses in use, each with its state. */
  readonly addresses: readonly AddressSummary[];
  /**
   * Resolves when the channel is connected, with one address at least. Without `timeoutMs` it makes one
   * attempt, at once; with it, attempts with pauses until the time is over, which waits for a server that is
   * still starting. Rejects with UNAVAILABLE, or CANCELLED when `signal` fires.
   */
  ready(options?: { timeoutMs?: number; signal?: AbortSignal }): Promise<void>;
  /**
   * Ends all connections. Calls in flight and waiting ones fail with UNAVAILABLE. Resolves when nothing of
   * them is left.
   */
  close(): Promise<void>;
  /** Calls `listener` after each change of `state`, as an EventEmitter does. */
  on(event: 'state', listener: ChannelStateListener): this;
  /** The same for the next change only. */
  once(event: 'state', listener: ChannelStateListener): this;
  /** Ends what `on` or `once` has begun. */
  off(event: 'state', listener: ChannelStateListener): this;
}
