/**
 * What tests need of this machine besides Node: the Debian packages of a purpose in scripts/debian.mjs, which
 * set-up installs where it may. Tests that lack one are skipped with the reason, and the sum of `npm test`
 * repeats it.
 */
import { beforeEach } from 'vitest';

const { missing } = (await import(new URL('../scripts/debian.mjs', import.meta.url).href)) as {
  missing: (purpose: string) => string[];
};

/** Why tests that need `purpose` cannot run here; empty when they can. */
export function whyNot(purpose: string): string {
  const packages = missing(purpose);
  return packages.length === 0 ? '' : `missing Debian packages: ${packages.join(', ')}`;
}

/** Called in a describe or at the top of a file: its tests need `purpose`. */
export function needs(purpose: string): void {
  const why = whyNot(purpose);
  beforeEach(({ skip }) => skip(why !== '', why));
}
