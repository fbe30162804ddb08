/**
 * The plain C sender (bench/native/tcp_stream.cc), which shows the throughput of TCP itself between two
 * threads of each side. It is a program that measures itself.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { cpuMeter } from './cpu.ts';
import { packageRoot } from './paths.ts';
import type { Peer } from './peer.ts';
import { notAsked } from './rows.ts';

const program = join(packageRoot, 'build', 'bench', 'tcp_stream');
const notAPair = (): Promise<never> => Promise.reject(new Error('the C sender is no pair of processes'));

export const sender: Peer = {
  name: 'C sender',
  fabric: 'tcp',
  async measure({ kind, payloadBytes }, { warmupMs, measureMs }) {
    const machine = cpuMeter([]);
    const child = spawn(program, [kind, ...[payloadBytes, warmupMs, measureMs].map(String)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Error(`tcp_stream ended with ${code}`);
    const { bytesPerSecond, cpuPercent } = JSON.parse(output) as Record<string, number>;
    return {
      callsPerSecond: bytesPerSecond! / payloadBytes,
      bytesPerSecond: bytesPerSecond!,
      p50Us: 0,
      p99Us: 0,
      p999Us: 0,
      cpuPercent: cpuPercent!,
      ...notAsked,
      othersPercent: Math.max(0, machine().othersPercent - cpuPercent!),
    };
  },
  serve: notAPair,
  connect: notAPair,
};
