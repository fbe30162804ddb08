/**
 * Reads CPU time and memory of processes from outside, so that an idle process is not woken. It works only on
 * Linux.
 */
import { readdirSync, readFileSync } from 'node:fs';

/**
 * Returns the nanoseconds for which all threads of the process have run, or 0 when the process has ended.
 */
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

/** Returns the number of bytes of memory that the process has in use, or 0 when the process has ended. */
export function residentBytes(pid: number): number {
  try {
    return 1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/**
 * Returns the nanoseconds for which all CPUs together were not idle since boot, including stolen time, in
 * steps of a clock tick (10 ms).
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

/** CPU use in percent of one CPU. */
export interface CpuUse {
  /** CPU time that the given processes used. */
  cpuPercent: number;
  /** CPU time that everything else on the machine used, which should be near 0 during a measurement. */
  othersPercent: number;
}

/** Starts to count. The returned function returns the CPU use since then. */
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
