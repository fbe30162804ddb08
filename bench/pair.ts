/**
 * A server process and a client process of one peer, which the orchestrator starts, queries and stops.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cpuMeter, residentBytes } from './cpu.ts';
import { Credentials } from './credentials.ts';
import type { Window } from './measure.ts';
import type { FromEnd, ToEnd } from './messages.ts';
import type { Node } from './nodes.ts';
import type { Peer } from './peer.ts';
import { commandOn, type Placement } from './placement.ts';
import { type Measurement, notAsked } from './rows.ts';
import type { Scenario } from './scenarios.ts';

const readyMaxMs = 20_000;
/**
 * Time in milliseconds that a scenario may take beyond its window. The slowest peer answers eight 16 MiB
 * calls in much less time.
 */
const overrunMaxMs = 30_000;
/**
 * Additional time in milliseconds for each connection, because they are opened one after another, before the
 * warm-up.
 */
const openMaxMs = 100;
const stopMaxMs = 3_000;
/**
 * The first descriptor behind Node's own descriptors of a child, which are stdin, stdout, stderr and the IPC
 * channel.
 */
const firstDescriptor = 4;

const endFile = fileURLToPath(new URL('./end.js', import.meta.url));
let pairs = 0;

const nothing = {
  callsPerSecond: 0,
  bytesPerSecond: 0,
  p50Us: 0,
  p99Us: 0,
  p999Us: 0,
  ...notAsked,
};

export class Pair {
  private readonly server: ChildProcess;
  private readonly client: ChildProcess;
  private readonly socket: string;
  private readonly credentials: Credentials | undefined;

  private constructor(
    server: ChildProcess,
    client: ChildProcess,
    socket: string,
    credentials: Credentials | undefined,
  ) {
    this.server = server;
    this.client = client;
    this.socket = socket;
    this.credentials = credentials;
  }

  /** Rejects with the reason when either side fails to start. */
  static async start(
    peer: Peer,
    scenario: Pick<Scenario, 'polling' | 'together' | 'network'>,
    placement: Placement | undefined,
    node: Node,
  ): Promise<Pair> {
    const socket = join(tmpdir(), `rdma-rpc-bench-${process.pid}-${++pairs}.sock`);
    const inherited = peer.descriptors?.() ?? [];
    const descriptors = inherited.map((_, index) => firstDescriptor + index);
    const { polling, network } = scenario;
    const credentials = peer.tls && network === 'tcp' ? new Credentials() : undefined;
    const tls = credentials?.folder;
    const start = (role: 'server' | 'client', port: number | undefined): ChildProcess => {
      const options = JSON.stringify({ peer: peer.name, socket, port, polling, descriptors, tls });
      const command = [node.file, ...nodeFlags(role), peer.endFile ?? endFile, role, options];
      const side = peer.threads ? 'all' : role;
      const [file = '', ...rest] = commandOn(placement?.[scenario.together ? 'one' : side], command);
      return spawn(file, rest, { stdio: ['ignore', 'inherit', 'inherit', 'ipc', ...inherited] });
    };
    const server = start('server', network === 'tcp' ? 0 : undefined);
    try {
      const ready = await reply(server, readyMaxMs);
      // grpc-js names a port even over a unix socket: 1.
      const port = network === 'tcp' && ready.type === 'ready' ? ready.port : undefined;
      const client = start('client', port);
      const pair = new Pair(server, client, socket, credentials);
      await reply(client, readyMaxMs).catch(async (error: unknown) => {
        await pair.stop();
        throw error;
      });
      return pair;
    } catch (error) {
      server.kill('SIGKILL');
      credentials?.remove();
      throw error;
    } finally {
      for (const descriptor of inherited) closeSync(descriptor);
    }
  }

  /** Rejects with the reason when a call failed or no result arrived in time. */
  async run(scenario: Scenario, window: Window): Promise<Measurement> {
    if (scenario.kind === 'idle') return await this.idle(window);
    if (scenario.kind === 'rest') return await this.rest(scenario, window);
    if (scenario.kind === 'sessions') return await this.sessions(scenario.sessions, window);
    const message: ToEnd = { type: 'run', scenario, window, serverPid: this.server.pid ?? 0 };
    this.client.send(message);
    const openingMaxMs = openMaxMs * scenario.sessions;
    const limitMs = openingMaxMs + window.warmupMs + window.measureMs + overrunMaxMs;
    const answer = await reply(this.client, limitMs);
    if (answer.type !== 'measured') throw new Error(`unexpected ${answer.type}`);
    return answer.measurement;
  }

  /**
   * Measures the CPU time of both processes while they are idle. The warm-up lets spinning, collection and
   * compilation end first.
   */
  private async idle(window: Window): Promise<Measurement> {
    await new Promise((done) => setTimeout(done, Math.max(300, window.warmupMs)));
    const cpu = cpuMeter([this.server.pid ?? 0, this.client.pid ?? 0]);
    await new Promise((done) => setTimeout(done, window.measureMs));
    return { ...nothing, ...cpu() };
  }

  /**
   * Compares the memory of both processes some seconds after large calls with their memory after small calls,
   * because small calls also make V8 compile and its heap grow.
   */
  private async rest(scenario: Scenario, window: Window): Promise<Measurement> {
    const resident = (): number =>
      [this.server, this.client].reduce((sum, { pid }) => sum + residentBytes(pid ?? 0), 0);
    const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
    const restMs = window.restMs ?? 0;
    await this.run({ ...scenario, kind: 'echo', payloadBytes: 32 }, window);
    await pause(restMs);
    const before = resident();
    const measurement = await this.run({ ...scenario, kind: 'echo' }, window);
    await pause(restMs);
    return { ...measurement, restTimes: resident() / before };
  }

  /**
   * Measures the growth of the server's process and the CPU use of both processes, with this number of idle
   * connections.
   */
  private async sessions(connections: number, window: Window): Promise<Measurement> {
    const open = async (): Promise<void> => {
      this.client.send({ type: 'open', connections } satisfies ToEnd);
      await reply(this.client, readyMaxMs);
    };
    const server = this.server.pid ?? 0;
    // The first connections run interpreted code, and allocate memory that any number of sessions shares.
    await open();
    await this.idle(window);
    const before = residentBytes(server);
    await open();
    const measurement = await this.idle(window);
    return { ...measurement, bytesPerSession: Math.max(0, residentBytes(server) - before) / connections };
  }

  async stop(): Promise<void> {
    await Promise.all([stopped(this.client), stopped(this.server)]);
    rmSync(this.socket, { force: true });
    this.credentials?.remove();
  }
}

/**
 * Returns extra flags of a measured process, for profiling one side:
 * `RDMA_RPC_BENCH_CLIENT_FLAGS="--perf-basic-prof" npm run bench …`.
 */
function nodeFlags(role: string): string[] {
  return (process.env[`RDMA_RPC_BENCH_${role.toUpperCase()}_FLAGS`] ?? '')
    .split(' ')
    .filter((flag) => flag !== '');
}

function reply(child: ChildProcess, timeoutMs: number): Promise<FromEnd> {
  return new Promise((resolve, reject) => {
    const done = (): void => {
      clearTimeout(timer);
      child.off('message', onMessage);
      child.off('exit', onExit);
      child.off('error', onError);
    };
    const fail = (reason: string): void => {
      done();
      reject(new Error(reason));
    };
    const onMessage = (message: FromEnd): void => {
      if (message.type === 'failed') {
        fail(message.reason);
        return;
      }
      done();
      resolve(message);
    };
    const onExit = (code: number | null, signal: string | null): void =>
      fail(`the process ended (${signal ?? code})`);
    const onError = (error: Error): void => fail(error.message);
    const timer = setTimeout(() => fail(`no answer within ${timeoutMs} ms`), timeoutMs);
    child.on('message', onMessage);
    child.on('exit', onExit);
    child.on('error', onError);
  });
}

function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), stopMaxMs);
    child.on('exit', () => {
      clearTimeout(timer);
      resolve();
    });
    const message: ToEnd = { type: 'stop' };
    if (child.connected) child.send(message, () => {});
  });
}
