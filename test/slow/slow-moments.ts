/**
 * Starts a client process with mixed traffic for a server process, and makes one of them slow during the
 * traffic. The suites of slow moments use it.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { compiled, exited, nextMessage, type ServerProcess } from '../runtime/process/processes.ts';
import type { LoadOptions, LoadReport } from './load.ts';

export interface Moment {
  /**
   * The process that is stopped, the length of each stop, and the time for which the process runs between two
   * stops.
   */
  readonly stops?: 'server' | 'client';
  readonly stopMs?: number;
  readonly runMs?: number;
  readonly busyMs?: number;
  readonly ms: number;
  readonly bytes?: number;
  readonly channel?: LoadOptions['channel'];
}

async function stopNowAndThen(child: ChildProcess, { stopMs = 0, runMs = 0, ms }: Moment): Promise<void> {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    await sleep(runMs);
    child.kill('SIGSTOP');
    await sleep(stopMs);
    child.kill('SIGCONT');
  }
}

/**
 * Resolves to the client's report. The function also checks the server's log: no handler may have read bytes
 * that were written after the end of its call.
 */
export async function live(server: ServerProcess, moment: Moment): Promise<LoadReport> {
  const options: LoadOptions = {
    address: server.address,
    channel: moment.channel ?? { fabric: ['shm'] },
    ms: moment.ms + (moment.runMs ?? 0),
    bytes: moment.bytes ?? 100_000,
    hastyMs: 15,
    busyMs: moment.busyMs ?? 0,
  };
  const client = fork(compiled('load', 'slow'), [JSON.stringify(options)]);
  try {
    await nextMessage(client);
    const last = nextMessage<LoadReport>(client);
    if (moment.stops !== undefined)
      await stopNowAndThen(moment.stops === 'server' ? server.child : client, moment);
    const report = await last;
    await exited(client);
    expect((await server.report()).log.torn ?? 0, 'requests that a handler got torn').toBe(0);
    return report;
  } finally {
    client.kill('SIGKILL');
    server.child.kill('SIGCONT');
  }
}

/** Checks that nothing was lost, nothing is stuck, and no other call was affected. */
export function expectNobodyHurt(report: LoadReport): void {
  expect(report.failed).toEqual({});
  expect(report.lost).toBe(0);
  expect(report.calls.protocolErrors).toBe(0);
  expect(report.patient).toBeGreaterThan(0);
  expect(report.ended.DEADLINE_EXCEEDED ?? 0).toBeGreaterThan(0);
}
