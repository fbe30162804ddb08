/**
 * A way to a server on which neither side hears of some of the other's features, as if it were an older one.
 */
import { changedWay, type Way } from '../control/changing-relay.ts';

/** To the server at `address`, HOST:PORT, without the features `unknown`. */
export function wayWithout(unknown: number, address: string): Promise<Way> {
  return changedWay(address, (frame) =>
    'features' in frame ? { ...frame, features: frame.features & ~unknown } : frame,
  );
}
