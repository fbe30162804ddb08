/**
 * Starts a server process on one RDMA device, and a channel of this process on another device. Most tests of
 * this folder begin with this pair. RDMA_RPC_TEST_DEVICES has the devices' names (`rxe0,rxe1`; with a single
 * name both ends use that device).
 */
import type { ForkOptions } from 'node:child_process';
import { setTimeout as timeout } from 'node:timers/promises';
import { inspect } from 'node:util';
import {
  type Channel,
  type ChannelOptions,
  type Client,
  createChannel,
  createClient,
  type FabricOptions,
  type RpcError,
  stats,
} from 'rdma-rpc';
import { afterAll, beforeAll, type TestContext } from 'vitest';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { ServerProcess } from '../runtime/process/processes.ts';

const names = (process.env.RDMA_RPC_TEST_DEVICES ?? '').split(',');
if (names[0] === '') throw new Error('RDMA_RPC_TEST_DEVICES is not set: npm run test:rdma sets it');
export const clientDevice: string = names[0]!;
export const serverDevice: string = names[1] ?? clientDevice;

/**
 * Returns options of one side, which allow only verbs unless `more` says otherwise. With these options a dead
 * connection is detected soon.
 */
export function over(device: string, more: FabricOptions = {}): FabricOptions {
  return { fabric: 'verbs', ...more, verbs: { device, ackTimeout: 14, retryCount: 4, ...more.verbs } };
}

/**
 * Time limit, in milliseconds, of calls and waits without a limit of their own. This limit is shorter than
 * the time limit of a test, so that the error names the operation that is stuck.
 */
const STUCK_MS = 60_000;
const CONNECT_MS = 45_000;

const open: { end(): Promise<unknown> }[] = [];
const servers = new Set<ServerProcess>();

/**
 * Ends everything that the test has begun, for `afterEach`. After a failed test, the function prints the
 * counters of both sides.
 */
export async function endAll({ task }: TestContext): Promise<void> {
  if (task.result?.state === 'fail') await tellCounts();
  for (const each of open.splice(0).reverse()) await each.end();
}

const notZero = (counts: object): object =>
  Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));

async function tellCounts(): Promise<void> {
  console.log('client:', notZero(stats('verbs')));
  for (const server of servers) {
    const report = isRunning(server) ? server.report() : Promise.reject(new Error('it has ended'));
    const limit = timeout(5000, undefined, { ref: false }).then(() => Promise.reject(new Error('no answer')));
    const counts = await Promise.race([report, limit]).then(
      ({ stats, ...more }) => ({ ...more, ...notZero(stats) }),
      (error: Error) => error.message,
    );
    console.log(`server ${server.address}:`, counts);
  }
}

const isRunning = ({ child }: ServerProcess): boolean => child.exitCode === null && child.signalCode === null;

async function launch(address: string | undefined, how: ForkOptions): Promise<ServerProcess> {
  const env = { ...process.env, RDMA_RPC_FABRIC: 'verbs', RDMA_RPC_DEVICE: serverDevice, ...how.env };
  const server = await ServerProcess.start(address, {}, { ...how, env });
  servers.add(server);
  return server;
}

async function end(server: ServerProcess): Promise<void> {
  servers.delete(server);
  if (isRunning(server)) await server.kill();
}

/** Registers an object that `endAll` ends after the test. */
export function begun<T extends { end(): Promise<unknown> }>(it: T): T {
  open.push(it);
  return it;
}

/** Starts a server for one test. */
export async function startServer(address?: string, how: ForkOptions = {}): Promise<ServerProcess> {
  const server = await launch(address, how);
  open.push({ end: () => end(server) });
  return server;
}

/**
 * Starts a server for all tests of a file or a `describe`. No test may change it. Starting one takes seconds
 * in a guest.
 */
export function sharedServer(): () => ServerProcess {
  let server: ServerProcess | undefined;
  beforeAll(async () => {
    server = await launch(undefined, {});
  });
  afterAll(() => server && end(server));
  return () => server!;
}

export interface Reached {
  readonly channel: Channel;
  readonly client: Client<typeof EchoDefinition>;
}

/** Returns options of a channel whose calls end when they are stuck. */
export function patient(options: ChannelOptions): ChannelOptions {
  return { connectTimeoutMs: CONNECT_MS, timeoutMs: STUCK_MS, ...options };
}

export function reach(address: string, options: ChannelOptions = over(clientDevice)): Reached {
  const channel = createChannel(address, patient(options));
  open.push({ end: () => channel.close() });
  return { channel, client: createClient(EchoDefinition, channel) };
}

/** Resolves to the error of a call that must fail. */
export function caught(promise: Promise<unknown>): Promise<RpcError> {
  return promise.then(
    () => Promise.reject(new Error('the call was answered')),
    (error: RpcError) => error,
  );
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Calls `look` again and again until `good` accepts its result. After the time limit, it throws an error with
 * the last result.
 */
export async function until<T>(look: () => T | Promise<T>, good: (seen: T) => boolean): Promise<void> {
  const end = performance.now() + STUCK_MS;
  let seen = await look();
  while (!good(seen)) {
    if (performance.now() > end)
      throw new Error(
        `not true within ${STUCK_MS} ms: ${good}; last value: ${inspect(seen, { breakLength: Infinity })}`,
      );
    await turn();
    seen = await look();
  }
}

export function pattern(bytes: number, seed: number): Uint8Array {
  return new Uint8Array(Buffer.alloc(bytes, `${seed}-pattern-`));
}

/** Compares bytes without vitest's own comparison, which takes seconds for a megabyte. */
export function same(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
