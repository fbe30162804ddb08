/**
 * The steps of opening a connection, for tools that measure how long each step takes (`rdma-rpc ping`). The
 * client's side of the handshake reports each step when the step ends, on its JS thread. Channels do not
 * listen to these reports.
 */
import type { FabricName } from '../../fabrics.ts';
import type { FabricReason } from '../frames.ts';

export type ConnectionStep =
  /** The socket of the sideband is connected. The TLS handshake comes next, if TLS is used. */
  | { readonly step: 'connected' }
  /** The TLS handshake is done. */
  | { readonly step: 'secured' }
  /** The server has answered the hello. */
  | { readonly step: 'welcomed' }
  /** The server has a queue pair for the session, which connects to the client's queue pair. */
  | { readonly step: 'attached'; readonly fabric: FabricName }
  /** The session cannot use this fabric, although both sides offer it. The client tries the next fabric. */
  | { readonly step: 'unreachable'; readonly fabric: FabricName; readonly reason: string }
  /**
   * This side's queue pair is connected, and the client may call. `others` says for each other fabric why it
   * was not chosen.
   */
  | { readonly step: 'opened'; readonly fabric: FabricName; readonly others: readonly FabricReason[] };

export type OnStep = (step: ConnectionStep) => void;
