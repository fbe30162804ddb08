/**
 * The report of a fresh process of bench/start about its start, as one line on its stdout. So that the report
 * does not change the result, this file loads nothing that a bare process does not load.
 */
import { writeSync } from 'node:fs';

export interface Start {
  /** CPU time in us, of all threads, from the first instruction until the modules are loaded. */
  readonly importUs: number;
  /** CPU time in us, of all threads, from the first instruction until the process is done. */
  readonly doneUs: number;
}

export function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** Runs when the process has reached its goal. */
export function tell(importUs: number): void {
  const start: Start = { importUs, doneUs: cpuUs() };
  writeSync(1, `${JSON.stringify(start)}\n`);
}
