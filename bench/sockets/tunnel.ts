/**
 * Programs through `rdma-rpc tunnel`, beside the same programs without it: redis-benchmark against
 * redis-server over unix sockets, and iperf3 over TCP. main.ts uses this file. Both ends of the tunnel, the
 * clients and the server share the CPUs of the machine without restrictions.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { end } from '../children.ts';
import { type CpuUse, cpuMeter } from '../cpu.ts';

const run = promisify(execFile);
const main = fileURLToPath(new URL('../../bundle/cli.js', import.meta.url));
/** A program that does not answer within this time has failed. */
const startMaxMs = 10_000;
const connections = 50;

export interface TunnelScenario {
  readonly name: string;
  readonly program: 'redis-benchmark' | 'iperf3';
  /** Commands that redis-benchmark sends before it waits for the answers. */
  readonly pipeline: number;
}

export const tunnelScenarios: readonly TunnelScenario[] = [
  { name: 'redis-GET', program: 'redis-benchmark', pipeline: 1 },
  { name: 'redis-GET-pipelined', program: 'redis-benchmark', pipeline: 16 },
  { name: 'iperf3', program: 'iperf3', pipeline: 1 },
];

/**
 * The way in which the program reaches its server. haproxy relays in C. One process of haproxy shows the cost
 * of any relay on this machine, and two processes in a chain show the cost of the two ends of a tunnel in C,
 * without sessions.
 */
export const ways = ['direct', 'haproxy', 'two haproxys', 'tunnel'] as const;
export type Way = (typeof ways)[number];

export interface TunnelMeasurement extends CpuUse {
  /** The number of requests; for iperf3, the number of bytes. */
  readonly perSecond: number;
  /** Zero for iperf3. */
  readonly p50Us: number;
  readonly p99Us: number;
}

/** Resolves when a program listens at `where`, which is a port or a path. */
async function listening(where: string | number): Promise<void> {
  for (const until = performance.now() + startMaxMs; ; await sleep(20)) {
    const socket = typeof where === 'number' ? connect(where, '127.0.0.1') : connect(where);
    const open = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (open) return;
    if (performance.now() > until) throw new Error(`nobody listens at ${where}`);
  }
}

/** Starts an end of a tunnel, and resolves to it when it listens. */
async function tunnelEnd(role: 'client' | 'server', ...args: string[]): Promise<ChildProcess> {
  const flags = (process.env[`RDMA_RPC_BENCH_${role.toUpperCase()}_FLAGS`] ?? '').split(' ').filter(Boolean);
  const child = spawn(process.execPath, [...flags, main, 'tunnel', ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error('an end of the tunnel did not start')));
    createInterface(child.stderr!).on('line', (line) => {
      if (/^(serving|listening) on/.test(line)) resolve();
    });
  });
  return child;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

const haproxyConfig = (bind: string, server: string): string => `global
  nbthread 1
defaults
  mode tcp
  timeout connect 10s
  timeout client 1h
  timeout server 1h
listen all
  bind ${bind}
  server one ${server}
`;

async function redisLoad(path: string, pipeline: number, seconds: number, pids: readonly number[]) {
  const load = async (requests: number): Promise<string[]> => {
    const args = ['-s', path, '-t', 'get', '-c', connections, '-P', pipeline, '-n', requests, '--csv'];
    const { stdout } = await run('redis-benchmark', args.map(String));
    return stdout.trim().split('\n').at(-1)!.replaceAll('"', '').split(',');
  };
  // The first run measures a rough rate, from which the later numbers of requests follow. The second run
  // warms up, because the ends of a tunnel need seconds until their code is compiled.
  const first = Number((await load(5_000 * pipeline))[1]);
  const rate = Number((await load(Math.ceil(first * seconds)))[1]);
  const cpu = cpuMeter(pids);
  const [, perSecond, , , p50Ms, , p99Ms] = await load(Math.ceil(rate * seconds));
  return {
    perSecond: Number(perSecond),
    p50Us: 1000 * Number(p50Ms),
    p99Us: 1000 * Number(p99Ms),
    ...cpu(),
  };
}

async function iperfLoad(port: number, seconds: number, pids: readonly number[]) {
  const load = async (time: number): Promise<number> => {
    const { stdout } = await run('iperf3', ['-c', '127.0.0.1', '-p', `${port}`, '-t', `${time}`, '-J']);
    const { end: all } = JSON.parse(stdout) as { end: { sum_received: { bits_per_second: number } } };
    return all.sum_received.bits_per_second / 8;
  };
  await load(1);
  const cpu = cpuMeter(pids);
  return { perSecond: await load(Math.max(1, Math.round(seconds))), p50Us: 0, p99Us: 0, ...cpu() };
}

/**
 * Measures one direction for about this number of seconds. The CPU time is that of the server and of both
 * tunnel ends.
 */
export async function measureTunnel(
  { program, pipeline }: TunnelScenario,
  way: Way,
  seconds: number,
): Promise<TunnelMeasurement> {
  const folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-bench-tunnel-'));
  const children: ChildProcess[] = [];
  const path = (name: string): string => join(folder, name);
  try {
    const redis = program === 'redis-benchmark';
    const port = await freePort();
    const server = redis
      ? ['redis-server', '--port', '0', '--unixsocket', path('redis'), '--save', '', '--dir', folder]
      : ['iperf3', '-s', '-p', `${port}`];
    children.push(spawn(server[0]!, server.slice(1), { stdio: 'ignore' }));
    await listening(redis ? path('redis') : port);
    let near = redis ? path('redis') : port;
    if (way !== 'direct') near = redis ? path('near') : await freePort();
    const at = (place: string | number, unix: string): string =>
      typeof place === 'string' ? `${unix}${place}` : `127.0.0.1:${place}`;
    const relayBy = async (listen: string | number, to: string | number): Promise<void> => {
      const file = path(`haproxy-${children.length}.cfg`);
      writeFileSync(file, haproxyConfig(at(listen, 'unix@'), at(to, 'unix@')));
      children.push(spawn('haproxy', ['-q', '-db', '-f', file], { stdio: 'ignore' }));
      await listening(listen);
    };
    const origin = redis ? path('redis') : port;
    if (way === 'haproxy') await relayBy(near, origin);
    if (way === 'two haproxys') {
      await relayBy(path('far'), origin);
      await relayBy(near, path('far'));
    }
    if (way === 'tunnel') {
      const to = at(origin, 'unix:');
      const listen = at(near, 'unix:');
      children.push(await tunnelEnd('server', '--serve', `unix:${path('far')}`, '--to', to));
      children.push(await tunnelEnd('client', '--listen', listen, '--to', `unix:${path('far')}`));
    }
    const pids = children.map(({ pid }) => pid ?? 0);
    return typeof near === 'string'
      ? await redisLoad(near, pipeline, seconds, pids)
      : await iperfLoad(near, seconds, pids);
  } finally {
    await Promise.all(children.map(end));
    rmSync(folder, { recursive: true, force: true });
  }
}
