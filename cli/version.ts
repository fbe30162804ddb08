/** The package's version, for `--version`. */
import { existsSync, readFileSync } from 'node:fs';

export function version(): string {
  // The file package.json is one directory above the sources, and two directories above the build.
  const places = ['../package.json', '../../package.json'].map((path) => new URL(path, import.meta.url));
  const manifest = places.find((url) => existsSync(url));
  if (manifest === undefined) throw new Error('rdma-rpc: package.json of the package is missing');
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
}
