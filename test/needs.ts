/**
 * Lists the Debian packages that tests need on this machine besides Node. scripts/debian.mjs lists them by
 * purpose, and set-up installs them if it is allowed to. Tests that lack a package are skipped with the
 * reason, and the summary of `npm test` repeats it.
 */
import { beforeEach } from 'vitest';

const { missing } = (await import(new URL('../scripts/debian.mjs', import.meta.url).href)) as {
  missing: (purpose: string) => string[];
};

/** Returns the reason why tests that need `purpose` cannot run here, or '' when they can. */
export function whyNot(purpose: string): string {
  const packages = missing(purpose);
  return packages.length === 0 ? '' : `missing Debian packages: ${packages.join(', ')}`;
}

/** Must be called in a describe or at the top of a file whose tests need `purpose`. */
export function needs(purpose: string): void {
  const why = whyNot(purpose);
  beforeEach(({ skip }) => skip(why !== '', why));
}
