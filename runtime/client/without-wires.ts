/**
 * Limits the security levels that a channel offers when its calls have credentials that are not sealed.
 * Runs before each handshake.
 */
import type { LocalSide } from '../control/handshake/session-setup.ts';
import { type FabricName, fabricRow } from '../fabrics.ts';

/**
 * Returns `side` without the fabrics that leave the host, because third parties could read the calls on those
 * fabrics.
 */
export function withoutWires(side: LocalSide): LocalSide {
  const reason =
    'credentials of calls are not sent over it, since others may read them (credentials.unsealed)';
  const wires: readonly FabricName[] = side.fabrics.filter((name) => fabricRow(name).reach === 'network');
  return {
    ...side,
    fabrics: side.fabrics.filter((name) => !wires.includes(name)),
    without: [...side.without, ...wires.map((name) => ({ name, reason }))],
  };
}
