/**
 * Our side of the comparison, which consists of the programs verbs_session and mr_cache_hit of bench/verbs.
 */
import { join } from 'node:path';
import { packageRoot } from '../paths.ts';
import type { Devices } from './perftest.ts';
import { start } from './program.ts';

export type Load =
  | 'pingpong'
  | 'read'
  | 'write'
  | 'beside-read'
  | 'beside-write'
  | 'echo-sent'
  | 'echo-moved';
export type Wait = 'poll' | 'events';
/** The way in which the memory of bulk calls is exposed (docs/wire/calls.md defines the terms). */
export type Exposure = 'window' | 'shared';

export interface SessionFigures {
  /** The median time of a call from submission to answer, in microseconds. */
  callUs: number;
  p99Us: number;
  bytesPerSecond: number;
}

export interface CacheFigures {
  hitNs: number;
  hits: number;
  deviceCalls: number;
}

async function figuresOf(command: readonly string[]): Promise<unknown> {
  const program = join(packageRoot, 'build/bench', command[0]!);
  const { code, output } = await start([program, ...command.slice(1)]).ended;
  if (code !== 0) throw new Error(`${command.join(' ')}: ${output.trim()}`);
  return JSON.parse(output);
}

export async function session(
  devices: Devices,
  load: Load,
  wait: Wait,
  exposure: Exposure,
  calls: number,
  /** Size of each message in bytes, for the echoes. */
  bytes?: number,
): Promise<SessionFigures> {
  const command = ['verbs_session', load, wait, exposure, String(calls), devices.server, devices.client];
  if (bytes !== undefined) command.push(String(bytes));
  return (await figuresOf(command)) as SessionFigures;
}

export async function mrCacheHit(): Promise<CacheFigures> {
  return (await figuresOf(['mr_cache_hit'])) as CacheFigures;
}
