/** The package's version, for `--version`. */

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';

export function version(): string {
  // dist/cli is one level deeper than cli.
  const path = [
    new URL('../package.json', import.meta.url),
    new URL('../../package.json', import.meta.url),
  ].find((url) => existsSync(url));
  const manifest = path && (createRequire(import.meta.url)(path.pathname) as { version: string });
  return manifest?.version ?? 'unknown';
}
