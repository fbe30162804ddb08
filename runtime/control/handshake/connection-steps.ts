/**
 * The steps of opening a connection, for tools that time them (`rdma-rpc ping`). The client's side of the
 * handshake reports each one when it ends, on its JS thread. Channels do not listen.
 */
import type { FabricName } from '../../fabrics.ts';
import type { FabricReason } from '../frames.ts';

export type ConnectionStep =
  /** The socket of the sideband is connected; TLS comes next, if there is any. */
  | { readonly step: 'connected' }
  /** The TLS handshake is done. */
  | { readonly step: 'secured' }
  /** The server has answered the hello. */
  | { readonly step: 'welcomed' }
  /** The server has a queue pair for the session, which connects to the client's. */
  | { readonly step: 'attached'; readonly fabric: FabricName }
  /** The session cannot use this fabric, which both sides offer; the next one is tried. */
  | { readonly step: 'unreachable'; readonly fabric: FabricName; readonly reason: string }
  /**
   * This side's queue pair is connected, and the client may call. `others`: why no other fabric was chosen.
   */
  | { readonly step: 'opened'; readonly fabric: FabricName; readonly others: readonly FabricReason[] };

export type OnStep = (step: ConnectionStep) => void;
