/**
 * The public interface of the channels that createChannel() returns. The class that implements it is in
 * channel.ts.
 */
import type { SessionSummary } from '../control/session-summary.ts';
import type { ChannelTotals } from '../core/channel-totals.ts';
import type { RpcError } from '../core/errors/rpc-error.ts';
import type { FabricName } from '../fabrics.ts';
import type { AddressSummary } from './connections/server-group.ts';

/**
 * `idle`: the channel is not connected, and the next call connects. `verifying`: the channel checks a
 * connection that was idle for long. `failing`: the channel is not connected and waits before the next
 * attempt.
 */
export type ChannelState = 'idle' | 'connecting' | 'ready' | 'verifying' | 'failing' | 'closed';

/** Runs for each change of a channel's state. `error` is the reason for the state `failing`. */
export type ChannelStateListener = (state: ChannelState, error: RpcError | undefined) => void;

/** Connections to a service at one or several addresses. Connects when the first call needs it. */
export interface Channel extends AsyncDisposable {
  /** The address that was passed to createChannel. The addresses of a list are joined by commas. */
  readonly address: string;
  readonly state: ChannelState;
  /** Fabric of the current connection. It is undefined when the channel is not connected. */
  readonly fabric: FabricName | undefined;
  /**
   * The current session. It is undefined when the channel is not connected. With several addresses, it is the
   * session of the last call.
   */
  readonly session: SessionSummary | undefined;
  /** The addresses in use, each with its state. */
  readonly addresses: readonly AddressSummary[];
  /** Numbers of calls, connections and losses since the channel was created. */
  readonly totals: ChannelTotals;
  /**
   * Resolves when the channel is connected to at least one address. Without `timeoutMs` it makes one attempt
   * at once. With `timeoutMs` it repeats attempts until the time has passed, for example while a server is
   * starting. Rejects with UNAVAILABLE, or with CANCELLED when `signal` is aborted.
   */
  ready(options?: { timeoutMs?: number; signal?: AbortSignal }): Promise<void>;
  /**
   * Ends all connections. Calls in flight and waiting calls fail with UNAVAILABLE. Resolves when all
   * resources are released.
   */
  close(): Promise<void>;
  /** Calls `listener` after each change of `state`, like an EventEmitter. */
  on(event: 'state', listener: ChannelStateListener): this;
  /** Calls `listener` for the next change only. */
  once(event: 'state', listener: ChannelStateListener): this;
  /** Removes a listener of `on` or `once`. */
  off(event: 'state', listener: ChannelStateListener): this;
}
