/** Which host this is, so that two sides know whether shared memory is worth a try. Used by the handshake. */
import { readFileSync, readlinkSync } from 'node:fs';

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
const twoHosts = 'the processes are on two hosts';

/** Why processes with these identities cannot open each other's memory; '' when they may. */
export function whyNotOneHost(one: string, other: string): string {
  if (one === other) return '';
  return boot(one) === boot(other)
    ? 'the processes are in two pid namespaces of one host (containers: share it with --pid=host)'
    : twoHosts;
}

/** Why processes with these identities cannot send each other memory; '' when they may. */
export function whyNotOneKernel(one: string, other: string): string {
  return boot(one) === boot(other) ? '' : twoHosts;
}
