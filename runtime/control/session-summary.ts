/**
 * What users can see of a session: for logs, tests and checks such as "only with windows". Made when asked
 * for, by channels and servers.
 */

import type { KnownPeer } from '../core/peer.ts';
import type { FabricName } from '../fabrics.ts';
import type { SessionInfo } from '../native/native.ts';
import type { Prepared } from './handshake/session-setup.ts';
import { levelOf, type SecurityLevel } from './security-level.ts';

export interface SessionSummary {
  /** What the other side says of itself; of a client, its address too. */
  readonly peer: string;
  /** Who it is, as far as that was verified; undefined: nobody knows. */
  readonly identity: string | undefined;
  /**
   * What is promised. `sealed`: as `bound`, and nobody but the two sides can read or change what passes.
   * `bound`: the queue pair is proved to be that of the side that the handshake was with. `peer`: who the
   * other side is was verified when it connected. `none`: nothing; the network must be trusted.
   */
  readonly security: SecurityLevel;
  readonly fabric: FabricName;
  /** Such as `mlx5_0`; the fabric's name where there is only one. */
  readonly device: string;
  /** Of the device; 0 where there are none. */
  readonly port: number;
  /**
   * What the peer can touch here. `window`: the memory of calls in flight, through keys that last one call.
   * `staging`: memory set aside for this session, since the device has no windows. `shared`: all registered
   * memory of the context.
   */
  readonly exposure: SessionInfo['security'];
  readonly callsInFlight: number;
}

/** `name`: the peer, for people. */
export function summaryOf(
  { context, target, guard }: Prepared,
  peer: KnownPeer,
  name: string,
): SessionSummary {
  const { device, port, security: exposure, callsInFlight } = context.native.sessionInfo(target.session);
  const { identity } = peer;
  const security = levelOf(peer.security, guard);
  return { peer: name, identity, security, fabric: context.fabric, device, port, exposure, callsInFlight };
}
