/**
 * Measures how fast a registry's changes reach calls, and whether calls continue without the registry. A
 * server is added or killed, and a registry is down for a while and comes back empty. The registries are
 * Debian's etcd-server, and the tests' imitation of a Kubernetes API server. scripts/bench-discovery.mjs
 * starts this program.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { program } from 'commander';
import { type Channel, createChannel, createClient, createServer, type Resolver } from 'rdma-rpc';
import { etcd, register } from 'rdma-rpc/etcd';
import { endpointSlices } from 'rdma-rpc/kubernetes';
import { ApiServer } from '../../test/discovery/api-server.ts';
import { EtcdServer } from '../../test/discovery/etcd-server.ts';
import { BenchDefinition } from '../gen/bench.rdma.ts';
import { roundsOf } from '../options.ts';
import { machineText, table } from '../report.ts';

program
  .name('npm run bench:discovery --')
  .description('Measures how fast changes of a registry reach calls, and calls while it is down.')
  .option('--rounds <n>', 'servers that are added to each registry', roundsOf, 100)
  .option('--kills <n>', 'servers that are killed', roundsOf, 5)
  .option('--restarts <n>', 'servers that are replaced under load', roundsOf, 100)
  .option('--down <seconds>', 'how long etcd is down', roundsOf, 60)
  .parse();
const options = program.opts<{ rounds: number; kills: number; restarts: number; down: number }>();

const service = 'bench';
/** Time to live of the registrations, in ms. */
const ttlMs = 2000;

const portOf = (address: string): number => Number(address.split(':').at(-1));

/** Starts a server whose answers contain its port. */
async function started() {
  let id = 0;
  const server = createServer().add(BenchDefinition, { echo: () => ({ id }) });
  const address = await server.listen('127.0.0.1:0');
  id = portOf(address);
  return { server, address };
}

function callerOf(resolver: Resolver) {
  const channel = createChannel(resolver, { resolveMinMs: 0 });
  const client = createClient(BenchDefinition, channel);
  return { channel, call: () => client.echo({}, { waitForReady: true, timeoutMs: 10_000 }) };
}

/**
 * Waits until calls go to `address`. It has no pauses of its own, because the benchmark would otherwise
 * measure the pauses.
 */
async function called(call: () => Promise<{ id?: number }>, address: string): Promise<void> {
  while ((await call()).id !== portOf(address)) await pause(0);
}

const shown = (ms: number): string => (ms < 100 ? ms.toFixed(1) : ms.toFixed(0));
function percentiles(all: readonly number[]): string[] {
  const sorted = [...all].sort((one, other) => one - other);
  const at = (share: number): string => shown(sorted[Math.ceil(share * sorted.length) - 1]!);
  return [at(0.5), at(0.99), shown(sorted.at(-1)!)];
}

/** Returns the time in ms from the change in the registry until a call has reached the new server. */
async function added(resolver: Resolver, add: (address: string, server: object) => Promise<void>) {
  const { channel, call } = callerOf(resolver);
  const first = await started();
  await add(first.address, first.server);
  await call();
  const times: number[] = [];
  for (let round = 0; round < options.rounds; ++round) {
    const { server, address } = await started();
    const from = performance.now();
    await add(address, server);
    await called(call, address);
    times.push(performance.now() - from);
    await server.shutdown();
  }
  await channel.close();
  await first.server.shutdown();
  return times;
}

/** Starts a process with a server that registers itself. */
async function child(endpoints: string): Promise<{ process: ChildProcess; address: string }> {
  const file = fileURLToPath(new URL('./server.js', import.meta.url));
  const running = spawn(process.execPath, [file, endpoints, service, String(ttlMs)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const address of createInterface(running.stdout)) return { process: running, address };
  throw new Error('the server has ended');
}

/** Returns the times in ms from the end of a server's process until its address has left the list. */
async function killed(url: string): Promise<number[]> {
  const { channel, call } = callerOf(etcd({ endpoints: url, service }));
  const stays = await child(url);
  const times: number[] = [];
  for (let round = 0; round < options.kills; ++round) {
    const { process: running, address } = await child(url);
    await called(call, address);
    // The kill comes at a random time between two renewals.
    await pause(Math.random() * ttlMs);
    const from = performance.now();
    running.kill('SIGKILL');
    while (channel.addresses.some((each) => each.address === address)) await pause(1);
    times.push(performance.now() - from);
  }
  stays.process.kill('SIGKILL');
  await channel.close();
  return times;
}

type Registered = Awaited<ReturnType<typeof started>>;

/**
 * Makes calls all the time while `during` runs. `during` gets three registered servers. Returns the number of
 * calls and of failed calls.
 */
async function underLoad(
  url: string,
  during: (channel: Channel, servers: Registered[], next: () => Promise<Registered>) => Promise<void>,
): Promise<string> {
  const next = async (): Promise<Registered> => {
    const one = await started();
    const place = { endpoints: url, service, address: one.address, ttlMs };
    await register(one.server, { ...place, log: () => undefined }).ready();
    return one;
  };
  const servers = [await next(), await next(), await next()];
  const { channel, call } = callerOf(etcd({ endpoints: url, service }));
  let [calls, failed, over] = [0, 0, false];
  const load = Array.from({ length: 8 }, async () => {
    for (; !over; ++calls) {
      await call().catch(() => ++failed);
      await pause(1);
    }
  });
  await pause(500);
  await during(channel, servers, next);
  await pause(500);
  over = true;
  await Promise.all(load);
  await channel.close();
  for (const { server } of servers) await server.shutdown();
  return `${failed} of ${calls} calls failed (goal: 0)`;
}

const restarted = (url: string): Promise<string> =>
  underLoad(url, async (_, servers, next) => {
    for (let i = 0; i < options.restarts; ++i) {
      const [old] = servers.splice(0, 1, await next());
      servers.push(servers.shift()!);
      await old!.server.shutdown();
    }
  });

const down = (etcdServer: EtcdServer): Promise<string> =>
  underLoad(etcdServer.url, async (channel) => {
    await etcdServer.kill();
    await pause(options.down * 1000);
    etcdServer.empty();
    await etcdServer.start();
    while (channel.addresses.length < 3 || channel.addresses.some(({ stale }) => stale)) await pause(10);
  });

async function withKubernetes(): Promise<number[]> {
  const api = await new ApiServer().start();
  const tokenFile = join(tmpdir(), `rdma-rpc-bench-token-${process.pid}`);
  writeFileSync(tokenFile, api.token);
  const resolver = endpointSlices({
    service,
    namespace: 'shop',
    server: api.url,
    ca: api.authority.ca,
    tokenFile,
  });
  let slices = 0;
  try {
    return await added(resolver, async (address) => {
      const [host = '', port] = address.split(':');
      // The first server stays; each next server replaces the last server, which has ended.
      const name = slices++ === 0 ? 'first' : 'next';
      api.set({ name, endpoints: [host], ports: [{ port: Number(port) }] });
    });
  } finally {
    rmSync(tokenFile);
    await api.stop();
  }
}

const server = await EtcdServer.start();
try {
  const { url } = server;
  const rows = [['ms', 'p50', 'p99', 'most', 'goal']];
  const byEtcd = await added(etcd({ endpoints: url, service }), async (address, own) => {
    register(own as ReturnType<typeof createServer>, { endpoints: url, service, address });
  });
  rows.push(['etcd: register → first call', ...percentiles(byEtcd), 'p99 100']);
  rows.push(['Kubernetes: event → first call', ...percentiles(await withKubernetes()), 'p99 100']);
  rows.push([`killed → out (TTL ${ttlMs} ms)`, ...percentiles(await killed(url)), `most ${ttlMs + 1000}`]);
  console.log(`\n${table(rows)}\n`);
  console.log(`one of three servers replaced, ${options.restarts} times: ${await restarted(url)}`);
  console.log(`etcd down for ${options.down} s, then empty: ${await down(server)}`);
  console.log(`\n${machineText()}`);
} finally {
  await server.remove();
}
