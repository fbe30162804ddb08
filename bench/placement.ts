/**
 * The CPUs that the two processes of a pair may use. Either each side has half of the cores to itself, or
 * both share one CPU. The scheduler alone may leave two busy processes on one CPU for seconds, and the
 * figures then describe neither case. The orchestrators use it, and pin the processes that they start with
 * `taskset` (util-linux).
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Lists of CPUs as `taskset -c` reads them, for example `0,2`. */
export interface Placement {
  readonly server: string;
  readonly client: string;
  /** The CPUs of both sides, for a peer whose two sides are threads of one process. */
  readonly all: string;
  /** One CPU, for scenarios whose sides share it. */
  readonly one: string;
}

/** The position of a CPU. Hardware threads of one core have the same `core`. */
export interface Cpu {
  readonly id: number;
  readonly package: string;
  readonly core: string;
}

/** Returns the numbers of a list as the kernel writes it: `0-2,5` is 0, 1, 2, 5. */
export function cpusOf(list: string): number[] {
  return list
    .trim()
    .split(',')
    .filter((part) => part !== '')
    .flatMap((part) => {
      const [first = 0, last = first] = part.split('-').map(Number);
      return Array.from({ length: last - first + 1 }, (_, index) => first + index);
    });
}

function grouped<T>(values: readonly T[], keyOf: (value: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const value of values) groups.set(keyOf(value), [...(groups.get(keyOf(value)) ?? []), value]);
  return [...groups.values()];
}

/**
 * Gives each side half of the cores of one processor package, the package with the most cores, so that no
 * call crosses packages. If only one core exists, its hardware threads are divided. Returns undefined for a
 * single CPU, which cannot be divided.
 */
export function placementOfCpus(cpus: readonly Cpu[]): Placement | undefined {
  const [largest = []] = grouped(cpus, (cpu) => cpu.package).sort((a, b) => b.length - a.length);
  if (largest.length < 2) return undefined;
  const cores = grouped(largest, (cpu) => cpu.core);
  const parts = cores.length > 1 ? cores : largest.map((cpu) => [cpu]);
  const half = parts.length >> 1;
  const listOf = (chosen: readonly (readonly Cpu[])[]): string =>
    chosen.flatMap((core) => core.map(({ id }) => id)).join(',');
  return {
    server: listOf(parts.slice(0, half)),
    client: listOf(parts.slice(half, 2 * half)),
    all: listOf(parts.slice(0, 2 * half)),
    one: String(largest[0]!.id),
  };
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}

function cpuOf(id: number): Cpu {
  const topology = `/sys/devices/system/cpu/cpu${id}/topology`;
  // Some virtual machines have no topology. Then each CPU counts as a core.
  const core = read(`${topology}/thread_siblings_list`) ?? String(id);
  return { id, package: read(`${topology}/physical_package_id`) ?? '', core };
}

/** Returns the CPUs that this process may use. */
function allowedCpus(): Cpu[] {
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(read('/proc/self/status') ?? '')?.[1] ?? '';
  return cpusOf(list).map(cpuOf);
}

/** The placement on this machine, and a sentence about it for the head of a report. */
export interface Here {
  /** Undefined where processes cannot be pinned. */
  readonly placement: Placement | undefined;
  readonly text: string;
}

/** Returns the sentence that says where both sides run. */
export function placementText({ server, client }: Placement): string {
  const named = (cpus: string): string => `${cpus.includes(',') ? 'CPUs' : 'CPU'} ${cpus}`;
  return `The server runs on ${named(server)}, and the client on ${named(client)}.`;
}

export function placementHere(): Here {
  const free = (why: string): Here => ({ placement: undefined, text: `Processes are not pinned: ${why}.` });
  const placement = placementOfCpus(allowedCpus());
  if (placement === undefined) return free('there is one CPU only');
  if (spawnSync('taskset', ['-c', placement.all, 'true']).status !== 0)
    return free('`taskset` is missing (Debian package util-linux)');
  return { placement, text: placementText(placement) };
}

/** Returns the command that runs `command` on these CPUs. Undefined leaves the choice to the scheduler. */
export function commandOn(cpus: string | undefined, command: readonly string[]): readonly string[] {
  return cpus === undefined ? command : ['taskset', '-c', cpus, ...command];
}
