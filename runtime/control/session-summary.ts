/**
 * The public description of a session, for logs, tests and checks such as "only with windows". Channels and
 * servers create it on request.
 */

import type { KnownPeer } from '../core/peer.ts';
import type { FabricName } from '../fabrics.ts';
import type { SessionInfo } from '../native/native.ts';
import type { Prepared } from './handshake/session-setup.ts';
import { levelOf, type SecurityLevel } from './security-level.ts';

export interface SessionSummary {
  /**
   * The name that the other side has sent. When the other side is a client, the name also contains its
   * address.
   */
  readonly peer: string;
  /** The verified identity of the other side. It is undefined when the other side was not verified. */
  readonly identity: string | undefined;
  /**
   * The security level. `none`: the network must be trusted. `peer`: the identity of the other side was
   * verified when it connected. `bound`: the queue pair is proved to belong to the side with which the
   * handshake was made. `sealed`: in addition, only the two sides can read or change the traffic.
   */
  readonly security: SecurityLevel;
  readonly fabric: FabricName;
  /** Name of the device, such as `mlx5_0`. A fabric with a single device has the name of the fabric here. */
  readonly device: string;
  /** Port of the device, or 0 for a device without ports. */
  readonly port: number;
  /**
   * The memory of this side that the peer can access. `window`: the memory of calls in flight, through keys
   * that last one call. `staging`: staging memory of this session, for example because the device has no
   * windows. `shared`: all registered memory of the context.
   */
  readonly exposure: SessionInfo['security'];
  readonly callsInFlight: number;
}

/** Returns the summary of a session. `name` is the peer's name. */
export function summaryOf(
  { context, target, protection }: Prepared,
  peer: KnownPeer,
  name: string,
): SessionSummary {
  const { device, port, security: exposure, callsInFlight } = context.native.sessionInfo(target.session);
  const { identity } = peer;
  const security = levelOf(peer.security, protection);
  return { peer: name, identity, security, fabric: context.fabric, device, port, exposure, callsInFlight };
}
