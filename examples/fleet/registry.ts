/**
 * The two registries of the fleet: etcd, in which servers register themselves with a lease, and a file with a
 * JSON list of addresses, which main.ts replaces and clients watch. Processes get the choice as an argument.
 */
import { renameSync, unwatchFile, watchFile, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Resolver, Server } from 'rdma-rpc';
import { etcd, register } from 'rdma-rpc/etcd';

/** `etcd:http://host:port` or `file:/path`. */
export type RegistryName = string;

const service = 'fleet/greeter';
/** The time for which a killed server stays in the list. It is the shortest time that `register` allows. */
const ttlMs = 2_000;

const withoutScheme = (name: RegistryName): string => name.slice(5);

/**
 * Replaces the list in one step: readers see either the old list or the new list. Does nothing for a list in
 * etcd.
 */
export function publish(name: RegistryName, addresses: readonly string[]): void {
  if (!name.startsWith('file:')) return;
  const path = withoutScheme(name);
  writeFileSync(`${path}.new`, JSON.stringify(addresses));
  renameSync(`${path}.new`, path);
}

function fileResolver(path: string): Resolver {
  return {
    resolve: async () => JSON.parse(await readFile(path, 'utf8')) as string[],
    watch: (onChange) => {
      const changed = (): void => onChange();
      watchFile(path, { interval: 50, persistent: false }, changed);
      return () => unwatchFile(path, changed);
    },
  };
}

export function resolverOf(name: RegistryName): Resolver {
  return name.startsWith('file:')
    ? fileResolver(withoutScheme(name))
    : etcd({ endpoints: withoutScheme(name), service });
}

/** Resolves when the server is in the list of etcd. The shutdown of the server removes the entry. */
export async function enlist(name: RegistryName, server: Server, address: string): Promise<void> {
  if (name.startsWith('file:')) return;
  // A server that is cut off cannot renew its lease, which this example shows.
  const log = (): void => undefined;
  await register(server, { endpoints: withoutScheme(name), service, address, ttlMs, log }).ready();
}
