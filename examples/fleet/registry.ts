/**
 * A registry that is a file: a JSON list of addresses, which main.ts replaces and clients watch. A resolver
 * of etcd or Kubernetes takes its place in a real fleet.
 */
import { renameSync, unwatchFile, watchFile, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Resolver } from 'rdma-rpc';

/** Replaces the list at once: readers see the old one or the new one. */
export function publish(path: string, addresses: readonly string[]): void {
  writeFileSync(`${path}.new`, JSON.stringify(addresses));
  renameSync(`${path}.new`, path);
}

export function fileResolver(path: string): Resolver {
  return {
    resolve: async () => JSON.parse(await readFile(path, 'utf8')) as string[],
    watch: (onChange) => {
      const changed = (): void => onChange();
      watchFile(path, { interval: 50, persistent: false }, changed);
      return () => unwatchFile(path, changed);
    },
  };
}
