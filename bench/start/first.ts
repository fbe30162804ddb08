/**
 * What a fresh process of bench/start tells of its start, as one line on its stdout: nothing is loaded for
 * that which a bare process has not.
 */
import { writeSync } from 'node:fs';

export interface Start {
  /**
   * CPU of the process with all its threads, from its first instruction, in microseconds: when its modules
   * were loaded, and when it was done.
   */
  readonly importUs: number;
  readonly doneUs: number;
}

export function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** The process has what it started for. */
export function tell(importUs: number): void {
  const start: Start = { importUs, doneUs: cpuUs() };
  writeSync(1, `${JSON.stringify(start)}\n`);
}
