/**
 * Runs `rdma-rpc perf` between two devices of this machine. It runs what the command runs, in a process for
 * each side, because starting the command itself takes seconds in a guest. It runs on the machine that has
 * the devices.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { dial } from '../../cli/perf/dial.ts';
import { type PerfFlags, planOf, withPerfFlags } from '../../cli/perf/flags.ts';
import type { PerfFabric, Plan } from '../../cli/perf/plan.ts';
import type { Row } from '../../cli/perf/row.ts';
import type { Devices } from './perftest.ts';

const host = '127.0.0.1';
const timeoutMs = 10_000;

let listener: ChildProcess | undefined;

async function listening(device: string): Promise<number> {
  listener ??= fork(fileURLToPath(new URL('listener.js', import.meta.url)), [device]);
  listener.send('next');
  const [port] = (await once(listener, 'message')) as [number];
  return port;
}

export interface ToolTest {
  readonly test: Plan['test'];
  readonly bytes: number;
  readonly iterations: number;
}

export async function tool(devices: Devices, fabric: PerfFabric, asked: ToolTest): Promise<Row> {
  const { test, bytes, iterations } = asked;
  const port = await listening(devices.server);
  const gid = fabric === 'bare' && devices.gidIndex !== undefined ? { gidIndex: devices.gidIndex } : {};
  // All settings have their defaults, except those that perftest chooses differently on devices that it does
  // not know.
  const command = withPerfFlags(new Command());
  command.parse(['-s', String(bytes), '-n', String(iterations), '-I', '0'], { from: 'user' });
  const plan = planOf(test, command.opts<PerfFlags>());
  const { peers } = await dial(plan, { host, port, device: devices.client, fabric, timeoutMs, ...gid });
  return peers[0]!.rows[0]!;
}

/** Ends the tool. Call it after the last test. */
export function closeTool(): void {
  listener?.disconnect();
}
