/**
 * Runs a proxy to a server. The proxy hides some features of each side from the other side, so that each side
 * seems to be an older version.
 */
import { changedWay, type Way } from '../control/changing-relay.ts';

/** Starts a proxy to the server at `address` (HOST:PORT) that hides the features `unknown`. */
export function wayWithout(unknown: number, address: string): Promise<Way> {
  return changedWay(address, (frame) =>
    'features' in frame ? { ...frame, features: frame.features & ~unknown } : frame,
  );
}
