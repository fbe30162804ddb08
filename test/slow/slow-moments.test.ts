/**
 * Tests that one slow moment does not cost other calls: the server's thread is busy, or SIGSTOP stops either
 * side, while thousands of calls are cancelled. The stops here are short; a separate suite has stops of
 * seconds (npm run test:slow).
 */
import { afterEach, describe, expect, test } from 'vitest';
import { ServerProcess } from '../runtime/process/processes.ts';
import { expectNobodyHurt, live } from './slow-moments.ts';

let server: ServerProcess | undefined;
afterEach(async () => {
  await server?.kill();
  server = undefined;
});

describe('a server whose thread is busy', () => {
  test.each([20, 100, 500])('for %d ms at a time costs no other calls', async (busyMs) => {
    server = await ServerProcess.start();
    const report = await live(server, { busyMs, ms: 4000 });
    expectNobodyHurt(report);
    expect(report.calls.callsReleasedLate).toBeGreaterThan(0);
  });
});

describe('SIGSTOP', () => {
  test.each([
    ['server', 100],
    ['server', 1000],
    ['client', 100],
    ['client', 1000],
  ] as const)('stops the %s for %d ms at a time, which costs no other calls', async (stops, stopMs) => {
    server = await ServerProcess.start();
    expectNobodyHurt(await live(server, { stops, stopMs, runMs: 200, ms: 4000 }));
  });

  // Over tcp a stopped server acknowledges nothing.
  test('stops a server over tcp for 5 s under large requests with short deadlines, which costs no other calls', async () => {
    server = await ServerProcess.start();
    const channel = { fabric: ['tcp'] as const };
    const moment = { stops: 'server', stopMs: 5000, runMs: 500, ms: 5000, bytes: 1_000_000 } as const;
    const report = await live(server, { ...moment, channel });
    expectNobodyHurt(report);
    expect(report.calls.callsReleasedLate).toBeGreaterThan(0);
    expect(report.lateMs).toBeLessThan(1000);
  });
});
