/** Identifies this host, so that two sides know whether they can try shared memory. Used by the handshake. */
import { readFileSync, readlinkSync } from 'node:fs';
import type { FabricRow } from '../fabrics.ts';

function read(what: () => string): string {
  try {
    return what().trim();
  } catch {
    return 'unknown';
  }
}

let identity: string | undefined;

/**
 * Returns boot id and pid namespace. Processes for which both are equal can open each other's memory through
 * /proc.
 */
export function hostIdentity(): string {
  identity ??= `${read(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'))}/${read(() => readlinkSync('/proc/self/ns/pid'))}`;
  return identity;
}

const boot = (identity: string): string => identity.split('/')[0] ?? '';

/**
 * Returns why two processes with these identities are out of the reach of a fabric (`reach` in fabrics.ts);
 * '' when they are within it.
 */
export function whyNotReached(reach: FabricRow['reach'], one: string, other: string): string {
  if (reach === 'network' || one === other) return '';
  if (boot(one) !== boot(other)) return 'the processes are on two hosts';
  return reach === 'kernel'
    ? ''
    : 'the processes are in two pid namespaces of one host (containers: share it with --pid=host)';
}
