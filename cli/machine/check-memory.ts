/** Checks of `rdma-rpc doctor`: the limit of locked memory, and the size of its pages. */
import { contextOptions } from '../../runtime/boundary/contexts.ts';
import type { Facts } from './facts.ts';
import { advice, type Finding, ok, problem } from './findings.ts';
import { kernelDevices, type Machine } from './machine.ts';

const mayLock = 14n; // CAP_IPC_LOCK
const mib = (bytes: number): string =>
  bytes < 2 ** 20 ? `${Math.ceil(bytes / 2 ** 10)} KiB` : `${Math.ceil(bytes / 2 ** 20)} MiB`;

/** Returns the limit of locked memory in bytes. A process with CAP_IPC_LOCK has no such limit: Infinity. */
export function lockedBytesMax(machine: Machine): number {
  const [, capabilities] = /^CapEff:\s*([0-9a-f]+)$/m.exec(machine.text('/proc/self/status') ?? '') ?? [];
  if (capabilities !== undefined && ((BigInt(`0x${capabilities}`) >> mayLock) & 1n) === 1n)
    return Number.POSITIVE_INFINITY;
  const [, soft] =
    /^Max locked memory\s+(\d+|unlimited)/m.exec(machine.text('/proc/self/limits') ?? '') ?? [];
  return soft === undefined || soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
}

const raise =
  'ulimit -l unlimited, LimitMEMLOCK=infinity in a systemd unit, memlock in /etc/security/limits.conf, --ulimit memlock=-1 for a container';

export function checkMemlock(machine: Machine, { firstBytes }: Facts): Finding[] {
  const bytes = lockedBytesMax(machine);
  const { arenaBytes } = contextOptions();
  if (bytes === Number.POSITIVE_INFINITY) return [ok('memlock', 'locked memory is not limited')];
  const what = `${mib(bytes)} of memory may be locked (RLIMIT_MEMLOCK)`;
  if (kernelDevices(machine).length === 0)
    return [ok('memlock', `${what}; nothing is locked without RDMA devices`)];
  if (bytes < firstBytes)
    return [problem('memlock', `${what}, and a first session on a device needs ${mib(firstBytes)}`, raise)];
  return bytes < firstBytes + arenaBytes
    ? [advice('memlock', `${what}: large messages have less than the ${mib(arenaBytes)} of the arena`, raise)]
    : [ok('memlock', what)];
}

/** Returns the word in brackets, for example `madvise` of `always [madvise] never`. */
const chosen = (text: string | undefined): string | undefined => /\[(\w+)\]/.exec(text ?? '')?.[1];

export function checkHugePages(machine: Machine): Finding[] {
  const choice = chosen(machine.text('/sys/kernel/mm/transparent_hugepage/enabled'));
  if (choice === undefined || kernelDevices(machine).length === 0) return [];
  if (choice !== 'never') return [ok('huge pages', `transparent huge pages: ${choice}`)];
  return [
    advice(
      'huge pages',
      'transparent huge pages are off: devices hold an entry for each 4 KiB of the arena',
      'echo madvise > /sys/kernel/mm/transparent_hugepage/enabled',
    ),
  ];
}
