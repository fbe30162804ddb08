/** CPU time and memory of processes, read from outside them so that an idle one is not woken. Linux only. */
import { readdirSync, readFileSync } from 'node:fs';

/** Nanoseconds that the process has run so far, all of its threads; 0 when it is gone. */
function cpuNs(pid: number): number {
  const threads = `/proc/${pid}/task`;
  try {
    return readdirSync(threads)
      .map((thread) => Number.parseInt(readFileSync(`${threads}/${thread}/schedstat`, 'utf8'), 10))
      .reduce((sum, ns) => sum + ns, 0);
  } catch {
    return 0;
  }
}

/** Memory of the process that is in use; 0 when it is gone. */
export function residentBytes(pid: number): number {
  try {
    return 1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/**
 * Nanoseconds that all CPUs together were not idle since the start, stolen time included; steps of a clock
 * tick (10 ms).
 */
function machineNs(): number {
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = readFileSync(
    '/proc/stat',
    'utf8',
  )
    .split('\n', 1)[0]!
    .split(/\s+/)
    .map(Number);
  return (user + nice + system + irq + softirq + steal) * 1e7;
}

/** Both in percent of one CPU. */
export interface CpuUse {
  /** By the processes asked about. */
  cpuPercent: number;
  /** By everything else on the machine: what a measurement should be free of. */
  othersPercent: number;
}

/** Starts to count; the result says what was used since then. */
export function cpuMeter(pids: readonly number[]): () => CpuUse {
  const own = (): number => pids.reduce((sum, pid) => sum + cpuNs(pid), 0);
  const start = performance.now();
  const ownBefore = own();
  const machineBefore = machineNs();
  return () => {
    const percentPerNs = 100 / ((performance.now() - start) * 1e6);
    const used = own() - ownBefore;
    const others = Math.max(0, machineNs() - machineBefore - used);
    return { cpuPercent: used * percentPerNs, othersPercent: others * percentPerNs };
  };
}
