/** CPU time and memory of processes, read from outside so that an idle process is not woken. Linux only. */
import { readdirSync, readFileSync } from 'node:fs';

/** Nanoseconds that all threads of the process have run so far; 0 when the process has ended. */
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

/** The memory that the process has in use; 0 when the process has ended. */
export function residentBytes(pid: number): number {
  try {
    return 1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/**
 * Nanoseconds that all CPUs together were not idle since boot, stolen time included; in steps of a clock tick
 * (10 ms).
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
  /** Used by the given processes. */
  cpuPercent: number;
  /** Used by everything else on the machine, which a measurement should be free of. */
  othersPercent: number;
}

/** Starts to count; the returned function tells what was used since then. */
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
