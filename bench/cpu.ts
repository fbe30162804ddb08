/** CPU time of processes, read from outside them so that an idle one is not woken. Linux only. */
import { readdirSync, readFileSync } from 'node:fs';

/** Nanoseconds that the process has run so far, all of its threads; 0 when it is gone. */
export function cpuNs(pid: number): number {
  const threads = `/proc/${pid}/task`;
  try {
    return readdirSync(threads)
      .map((thread) => Number.parseInt(readFileSync(`${threads}/${thread}/schedstat`, 'utf8'), 10))
      .reduce((sum, ns) => sum + ns, 0);
  } catch {
    return 0;
  }
}

/** Percent of one CPU that `pids` have used together between start and now. */
export function cpuMeter(pids: readonly number[]): () => number {
  const read = (): number => pids.reduce((sum, pid) => sum + cpuNs(pid), 0);
  const start = performance.now();
  const before = read();
  return () => (100 * (read() - before)) / ((performance.now() - start) * 1e6);
}
