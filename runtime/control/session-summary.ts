/** What users can see of a session: for logs, tests and checks such as "only with windows". Made when asked for, by channels and servers. */
import type { FabricName } from '../lane/contexts.ts';
import type { SessionInfo } from '../native.ts';
import type { Prepared } from './session-setup.ts';

export interface SessionSummary {
  /** What the other side says of itself; of a client, its address too. */
  readonly peer: string;
  readonly fabric: FabricName;
  /** Such as `mlx5_0`; the fabric's name where there is only one. */
  readonly device: string;
  /** Of the device; 0 where there are none. */
  readonly port: number;
  /**
   * What the peer can touch here. `window`: the memory of calls in flight, through keys that last one call. `staging`: memory set aside for this session,
   * since the device has no windows. `shared`: all registered memory of the context.
   */
  readonly security: SessionInfo['security'];
  readonly callsInFlight: number;
}

export function summaryOf({ context, target }: Prepared, peer: string): SessionSummary {
  const { device, port, security, callsInFlight } = context.native.sessionInfo(target.session);
  return { peer, fabric: context.fabric, device, port, security, callsInFlight };
}
