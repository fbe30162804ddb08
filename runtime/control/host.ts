/** Identifies this host, so that the two sides of a handshake know whether they can try shared memory. */
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
 * Returns boot id and pid namespace. Two processes with the same boot id and pid namespace can open each
 * other's memory through /proc.
 */
export function hostIdentity(): string {
  identity ??= `${read(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'))}/${read(() => readlinkSync('/proc/self/ns/pid'))}`;
  return identity;
}

const boot = (identity: string): string => identity.split('/')[0] ?? '';

/**
 * Returns the reason why a fabric with this `reach` (fabrics.ts) cannot connect two processes with these host
 * identities, or '' when it can.
 */
export function whyNotReached(reach: FabricRow['reach'], one: string, other: string): string {
  if (reach === 'network' || one === other) return '';
  if (boot(one) !== boot(other)) return 'the processes are on two hosts';
  return reach === 'kernel'
    ? ''
    : 'the processes are in two pid namespaces of one host (containers: share it with --pid=host)';
}
