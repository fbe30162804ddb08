/**
 * A server process on one RDMA device and a channel of this process on another: what the tests of this folder begin with. The devices' names come
 * with RDMA_RPC_TEST_DEVICES (`rxe0,rxe1`; a single one is both ends).
 */
import type { ForkOptions } from 'node:child_process';
import {
  type Channel,
  type ChannelOptions,
  type ClientOf,
  createChannel,
  createClient,
  type FabricOptions,
  type RpcError,
} from 'rdma-rpc';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { ServerProcess } from '../runtime/process/processes.ts';

const names = (process.env['RDMA_RPC_TEST_DEVICES'] ?? '').split(',');
if (names[0] === '') throw new Error('RDMA_RPC_TEST_DEVICES is not set: npm run test:rdma sets it');
export const clientDevice: string = names[0]!;
export const serverDevice: string = names[1] ?? clientDevice;

/** Options of a side, over verbs alone unless given otherwise. A dead wire is noticed soon. */
export function over(device: string, more: FabricOptions = {}): FabricOptions {
  return { fabric: 'verbs', ...more, verbs: { device, retryCount: 4, ...more.verbs } };
}

const open: { end(): Promise<unknown> }[] = [];

/** For `afterEach`. */
export async function endAll(): Promise<void> {
  for (const each of open.splice(0).reverse()) await each.end();
}

export async function startServer(address?: string, how: ForkOptions = {}): Promise<ServerProcess> {
  const env = {
    ...process.env,
    RDMA_RPC_FABRIC: 'verbs',
    RDMA_RPC_DEVICE: serverDevice,
    ...how.env,
  };
  const server = await ServerProcess.start(address, {}, { ...how, env });
  const { child } = server;
  const running = (): boolean => child.exitCode === null && child.signalCode === null;
  open.push({ end: async () => running() && server.kill() });
  return server;
}

export interface Reached {
  readonly channel: Channel;
  readonly client: ClientOf<typeof EchoDefinition>;
}

export function reach(address: string, options: ChannelOptions = over(clientDevice)): Reached {
  const channel = createChannel(address, { connectTimeoutMs: 60_000, ...options });
  open.push({ end: () => channel.close() });
  return { channel, client: createClient(EchoDefinition, channel) };
}

/** The error of a call that must fail. */
export function caught(promise: Promise<unknown>): Promise<RpcError> {
  return promise.then(
    () => Promise.reject(new Error('the call was answered')),
    (error: RpcError) => error,
  );
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
/** The test's own limit ends it otherwise. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await turn();
}

export function pattern(bytes: number, seed: number): Uint8Array {
  return new Uint8Array(Buffer.alloc(bytes, `${seed}-pattern-`));
}

/** Compared without vitest's own comparison, which takes seconds for a megabyte. */
export function same(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
