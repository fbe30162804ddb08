/**
 * The part of a report about the system's limits for this process: locked memory, huge pages, and the control
 * groups that limit RDMA objects and pages. Only report.ts uses this file.
 */
import { lockedBytesMax } from '../check-memory.ts';
import type { Machine } from '../machine.ts';

/** A name and its value, as they are printed. */
export type Fact = readonly [name: string, value: string];

/** Files of a control group (version 2) with the limits that matter to devices. */
const groupFiles = ['rdma.max', 'rdma.current', 'cpu.max', 'memory.max'];

/** Returns the folder of this process's control group, or the root when that folder is not visible here. */
function groupFolder(machine: Machine): string {
  const [, path = '/'] = /^0::(\S+)$/m.exec(machine.text('/proc/self/cgroup') ?? '') ?? [];
  const folder = `/sys/fs/cgroup${path === '/' ? '' : path}`;
  return machine.exists(folder) ? folder : '/sys/fs/cgroup';
}

function groupFacts(machine: Machine): readonly Fact[] {
  const folder = groupFolder(machine);
  const pages = machine.names(folder).filter((name) => /^hugetlb\..*\.(max|current)$/.test(name));
  return [...groupFiles, ...pages].flatMap((name) => {
    const text = machine.text(`${folder}/${name}`);
    return text === undefined ? [] : [[`cgroup ${name}`, text.replaceAll('\n', '; ') || 'no limit'] as const];
  });
}

function processLimit(machine: Machine, name: string): string | undefined {
  const line = (machine.text('/proc/self/limits') ?? '').split('\n').find((each) => each.startsWith(name));
  return line?.slice(name.length).trim().split(/\s+/)[0];
}

function lockedMemory(machine: Machine): string | undefined {
  const limit = processLimit(machine, 'Max locked memory');
  if (limit === undefined || limit === 'unlimited') return limit;
  // The findings of the same report say that locked memory is not limited.
  const isExempt = lockedBytesMax(machine) === Number.POSITIVE_INFINITY;
  return `${limit} bytes${isExempt ? ', but this process has CAP_IPC_LOCK and so no limit' : ''}`;
}

export function limitFacts(machine: Machine): readonly Fact[] {
  const meminfo = machine.text('/proc/meminfo') ?? '';
  const huge = ['HugePages_Total', 'HugePages_Free', 'Hugepagesize'].flatMap((name) => {
    const [, value] = new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(meminfo) ?? [];
    return value === undefined ? [] : [`${name} ${value}`];
  });
  const facts: (readonly [string, string | undefined])[] = [
    ['locked memory (memlock)', lockedMemory(machine)],
    ['open files', processLimit(machine, 'Max open files')],
    ['huge pages', huge.length === 0 ? undefined : huge.join(', ')],
    ['transparent huge pages', machine.text('/sys/kernel/mm/transparent_hugepage/enabled')],
  ];
  return [
    ...facts.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
    ...groupFacts(machine),
  ];
}
