/** Which host this is, so that two sides know whether shared memory is worth a try. Used by the handshake. */
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

/** Boot id and pid namespace: processes that agree on both can open each other's memory through /proc. */
export function hostIdentity(): string {
  identity ??= `${read(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'))}/${read(() => readlinkSync('/proc/self/ns/pid'))}`;
  return identity;
}

const boot = (identity: string): string => identity.split('/')[0] ?? '';

/**
 * Why processes with these identities are not within the reach of a fabric (`reach` in fabrics.ts); '' when
 * they are.
 */
export function whyNotReached(reach: FabricRow['reach'], one: string, other: string): string {
  if (reach === 'network' || one === other) return '';
  if (boot(one) !== boot(other)) return 'the processes are on two hosts';
  return reach === 'kernel'
    ? ''
    : 'the processes are in two pid namespaces of one host (containers: share it with --pid=host)';
}
