/**
 * Runs as a process with a server and a client on two simulated NICs, which the library in LD_PRELOAD adds
 * (native/test/nic/preload). `runOnNics` (nics.ts) starts it as a process, because a process has these NICs
 * from its beginning or not at all. The argument is the name of a scenario. The program prints the result as
 * JSON.
 */
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import {
  type Channel,
  type ChannelOptions,
  createChannel,
  createClient,
  createServer,
  type FabricOptions,
  leaseOf,
  type Server,
  stats,
} from 'rdma-rpc';
import { hostIdentity } from '../../runtime/control/host.ts';
import { Link } from '../../runtime/control/link.ts';
import { hello } from '../control/by-hand.ts';
import { type Change, changedWay } from '../control/changing-relay.ts';
import { type EchoLog, echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { compiled } from '../runtime/process/processes.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { newLog, streamHandlers } from '../stream/streams-service.ts';

const log: EchoLog = { started: 0, aborted: [] };

const on = (device: string): FabricOptions => ({ fabric: 'verbs', verbs: { device } });

async function serve(options: FabricOptions): Promise<{ server: Server; address: string }> {
  const server = createServer(options)
    .add(EchoDefinition, echoHandlers(log))
    .add(StreamsDefinition, streamHandlers(newLog()));
  return { server, address: await server.listen('127.0.0.1:0') };
}

const pattern = (bytes: number, seed: number): Uint8Array =>
  new Uint8Array(Buffer.alloc(bytes, `${seed}-pattern-`));

/** Makes calls of all four kinds and of all sizes. Returns what went wrong. */
async function wrongCalls(channel: Channel): Promise<string[]> {
  const wrong: string[] = [];
  const echo = createClient(EchoDefinition, channel);
  for (const bytes of [0, 30, 500, 8100, 8200, 16_400, 100_000, 1_000_000, 3_000_000]) {
    const payload = pattern(bytes, bytes);
    const answer = await echo.echo({ payload, number: bytes });
    if (answer.number !== bytes || Buffer.compare(answer.payload, payload) !== 0) wrong.push(`echo ${bytes}`);
    leaseOf(answer)?.release();
  }
  const many = Array.from({ length: 300 }, async (_, i) => {
    const payload = pattern(i % 20 === 0 ? 200_000 : 40, i);
    const answer = await echo.echo({ payload, number: i });
    if (answer.number !== i || Buffer.compare(answer.payload, payload) !== 0) wrong.push(`call ${i} of many`);
    leaseOf(answer)?.release();
  });
  await Promise.all(many);
  const streams = createClient(StreamsDefinition, channel);
  let next = 0;
  for await (const { number, payload } of streams.count({ count: 50, bytes: 20_000 })) {
    if (number !== next++ || payload.byteLength !== 20_000 || payload.some((byte) => byte !== 7))
      wrong.push(`message ${number} of a server's stream`);
  }
  async function* numbers() {
    for (let number = 1; number <= 100; ++number) yield { number, payload: pattern(3000, number) };
  }
  const { number: sum } = await streams.sum(numbers());
  if (next !== 50 || sum !== 5050) wrong.push(`streams: ${next} messages, the sum is ${sum}`);
  let back = 0;
  for await (const { number, payload } of streams.echo(numbers())) {
    if (number !== ++back || Buffer.compare(payload, pattern(3000, number)) !== 0)
      wrong.push(`message ${number} in both directions`);
  }
  if (back !== 100) wrong.push(`${back} messages came back`);
  return wrong;
}

async function calls(): Promise<object> {
  const { server, address } = await serve(on('nic1'));
  const channel = createChannel(address, on('nic0'));
  const wrong = await wrongCalls(channel);
  const { fabric, device, exposure } = channel.session!;
  await channel.close();
  await server.shutdown();
  return { wrong, fabric, device, exposure, protocolErrors: stats('verbs').protocolErrors };
}

/** Ends clients in the middle of their calls, and checks that the server goes on. */
async function kills(): Promise<object> {
  const { server, address } = await serve(on('nic1'));
  const env = { ...process.env, RDMA_RPC_FABRIC: 'verbs', RDMA_RPC_DEVICE: 'nic0' };
  for (let i = 0; i < 5; ++i) {
    const worker = new Worker(compiled('worker'), { workerData: address, env });
    await new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
    await worker.terminate();
  }
  while (server.sessionCount > 0) await new Promise((resolve) => setImmediate(resolve));
  const channel = createChannel(address, on('nic0'));
  const wrong = await wrongCalls(channel);
  await channel.close();
  await server.shutdown();
  // A hanging handler has been notified of the end of its client.
  return { wrong, aborted: log.aborted.length };
}

/** The server's welcome is as of an older release, which names no GIDs. */
const olderServer: Change = (frame) => (frame.type === 'welcome' ? { ...frame, gids: undefined } : frame);

/**
 * The client is as of a release without any of the abilities that were added later. It ignores the GIDs of a
 * welcome, so it tries one device for each fabric.
 */
const olderClient: Change = (frame) => {
  if (frame.type === 'hello') {
    const fabrics = frame.fabrics.map(({ name, host }) => ({ name, host }));
    return { ...frame, features: 0, versionMax: undefined, ciphers: undefined, fabrics };
  }
  return frame.type === 'welcome' ? { ...frame, features: 0, gids: undefined } : frame;
};

interface RailsOptions {
  /** Makes one side act as a side of another release. */
  readonly change?: Change;
  readonly fabric?: FabricOptions['fabric'];
  readonly channel?: Pick<ChannelOptions, 'connectTimeoutMs'>;
  /** The time limit of a device. */
  readonly deviceMs?: number;
  /** Whether the first call waits for a later attempt when the first one takes too long. */
  readonly waits?: boolean;
  /** Whether the server has two addresses. */
  readonly doors?: boolean;
}

/**
 * Connects where each side has several devices. Returns the devices of both ends, or the error of a call, and
 * the number of attaches of the client.
 */
async function rails({
  change = (frame) => frame,
  fabric = 'verbs',
  channel: options = {},
  deviceMs,
  waits = false,
  doors = false,
}: RailsOptions = {}): Promise<object> {
  const { server, address } = await serve({ ...on('nic2,nic3'), fabric });
  let attaches = 0;
  const way = await changedWay(address, (frame) => {
    if (frame.type === 'attach') ++attaches;
    return change(frame);
  });
  // The door of the server is tried before its address.
  const resolver = { resolve: async () => [{ address, doors: [way.address] }] };
  const verbs = { device: 'nic0,nic1', ...(deviceMs !== undefined && { connectTimeoutMs: deviceMs }) };
  const channel = createChannel(doors ? resolver : way.address, { fabric, verbs, ...options });
  const error = await createClient(EchoDefinition, channel)
    .echo({ number: 1 }, waits ? { waitForReady: true, timeoutMs: 60_000 } : {})
    .then(
      () => undefined,
      ({ message }: Error) => message,
    );
  const reached = async () => ({
    wrong: await wrongCalls(channel),
    devices: [channel.session!, ...server.sessions].map(({ device }) => device),
  });
  const result = error === undefined ? await reached() : { error };
  await channel.close();
  await server.shutdown();
  await way.end();
  return { ...result, attaches };
}

/**
 * Sends attaches with an address that no device has, as a client, until the server ends the connection.
 * Returns the types of the frames that it receives, and what goes wrong for another client meanwhile.
 */
async function manyAttaches(): Promise<object> {
  const { server, address } = await serve(on('nic2,nic3'));
  const link = new Link(connect(Number(address.split(':')[1]), '127.0.0.1'));
  const answers: string[] = [];
  const receive = async (): Promise<string> => (await link.receive()).type;
  link.send(hello({ fabrics: [{ name: 'verbs', host: hostIdentity() }] }));
  answers.push(await receive());
  const channel = createChannel(address, on('nic0,nic1'));
  const wrong = await wrongCalls(channel);
  for (let last = ''; last !== 'end'; answers.push(last)) {
    link.send({ type: 'attach', fabric: 'verbs', address: new Uint8Array(72) });
    last = await receive().catch(() => 'end');
  }
  await channel.close();
  await server.shutdown();
  return { answers, wrong };
}

/** Returns the median time of a call, in us, by the number of bytes each way. */
async function times(): Promise<object> {
  const { server, address } = await serve(on('nic1'));
  const channel = createChannel(address, on('nic0'));
  const echo = createClient(EchoDefinition, channel);
  const medians: Record<string, number> = {};
  for (const kib of [64, 256, 1024, 4096]) {
    const payload = pattern(kib * 1024, kib);
    const took: number[] = [];
    for (let i = 0; i < 240; ++i) {
      const begin = performance.now();
      leaseOf(await echo.echo({ payload }))?.release();
      if (i >= 40) took.push(performance.now() - begin);
    }
    took.sort((a, b) => a - b);
    medians[kib] = Math.round(took[took.length / 2]! * 1000);
  }
  const { exposure } = channel.session!;
  await channel.close();
  await server.shutdown();
  return { exposure, medians };
}

const scenarios: Readonly<Record<string, () => Promise<object>>> = {
  calls,
  kills,
  rails: () => rails(),
  railsWithTcp: () => rails({ fabric: ['verbs', 'tcp'], waits: true }),
  railsInShortTime: () =>
    rails({ fabric: ['verbs', 'tcp'], waits: true, channel: { connectTimeoutMs: 3000 } }),
  railsWithDoors: () => rails({ fabric: ['verbs', 'tcp'], waits: true, doors: true }),
  railsInPartOfTime: () => rails({ deviceMs: 60_000, channel: { connectTimeoutMs: 10_000 } }),
  olderServer: () => rails({ change: olderServer }),
  olderClient: () => rails({ change: olderClient }),
  olderClientWithTcp: () => rails({ change: olderClient, fabric: ['verbs', 'tcp'] }),
  manyAttaches,
  times,
};
console.log(JSON.stringify(await scenarios[process.argv[2]!]!()));
