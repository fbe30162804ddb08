/**
 * The messages that the two sides of a test exchange. They are checked field by field, because a peer may be
 * any program.
 */
import { type Message, PerfError } from './control.ts';
import {
  atomics,
  connections,
  fabricNames,
  limits,
  type PerfFabric,
  type Plan,
  testNames,
  whyNotPlan,
} from './plan.ts';
import type { Report } from './report.ts';
import type { PerfAddress } from './step.ts';

/**
 * The version of the protocol. It changes with the messages, and with the layout of the memory of the two
 * sides.
 */
const protocol = 2;

const wrong = (name: string): PerfError => new PerfError(`the peer has sent an invalid value of '${name}'`);

function whole(
  from: Message,
  name: string,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  const value = from[name];
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  throw wrong(name);
}

function flag(from: Message, name: string): boolean {
  const value = from[name];
  if (typeof value === 'boolean') return value;
  throw wrong(name);
}

function one<T extends string>(from: Message, name: string, known: readonly T[]): T {
  const value = known.find((each) => each === from[name]);
  if (value === undefined) throw wrong(name);
  return value;
}

function list(from: Message, name: string, max: number): readonly unknown[] {
  const value = from[name];
  if (Array.isArray(value) && value.length >= 1 && value.length <= max) return value;
  throw wrong(name);
}

export interface Hello {
  readonly plan: Plan;
  /** The fabrics of the connecting side, the best first. */
  readonly fabrics: readonly PerfFabric[];
}

export const helloMessage = ({ plan, fabrics }: Hello): Message => ({
  kind: 'hello',
  protocol,
  ...plan,
  fabrics,
});

export function readHello(from: Message): Hello {
  if (from.protocol !== protocol)
    throw new PerfError(
      `the two sides are of different versions of rdma-rpc (${protocol} and ${String(from.protocol).slice(0, 10)})`,
    );
  const sizes = list(from, 'sizes', limits.sizes.max).map((bytes) =>
    whole({ kind: '', sizes: bytes }, 'sizes', limits.bytes),
  );
  const plan: Plan = {
    test: one(from, 'test', testNames),
    connection: one(from, 'connection', connections),
    atomic: one(from, 'atomic', atomics),
    sizes,
    iterations: whole(from, 'iterations', limits.iterations),
    durationMs: whole(from, 'durationMs', limits.durationMs),
    depth: whole(from, 'depth', limits.depth),
    receiveDepth: whole(from, 'receiveDepth', limits.receiveDepth),
    queuePairs: whole(from, 'queuePairs', limits.queuePairs),
    inlineMax: whole(from, 'inlineMax', limits.inlineMax),
    signalEvery: whole(from, 'signalEvery', limits.signalEvery),
    postList: whole(from, 'postList', limits.postList),
    bidirectional: flag(from, 'bidirectional'),
    validate: flag(from, 'validate'),
    events: flag(from, 'events'),
    sharedReceives: flag(from, 'sharedReceives'),
    manager: flag(from, 'manager'),
    multicast: flag(from, 'multicast'),
    seed: whole(from, 'seed', { min: 0, max: 2 ** 32 }),
  };
  const why = whyNotPlan(plan);
  if (why !== undefined) throw new PerfError(why);
  const fabrics = list(from, 'fabrics', fabricNames.length).map((name) =>
    one({ kind: '', fabrics: name }, 'fabrics', fabricNames),
  );
  return { plan, fabrics };
}

export interface Offer {
  readonly fabric: PerfFabric;
  readonly device: string;
  readonly address: PerfAddress;
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

export const offerMessage = ({ fabric, device, address }: Offer): Message => ({
  kind: 'address',
  fabric,
  device,
  addr: String(address.addr),
  bytes: String(address.bytes),
  rkey: address.rkey,
  queuePairs: address.queuePairs.map(hex),
});

const addressMax = 512;
const u64Max = 2n ** 64n;

function big(from: Message, name: string): bigint {
  const value = from[name];
  if (typeof value === 'string' && /^\d{1,20}$/.test(value) && BigInt(value) < u64Max) return BigInt(value);
  throw wrong(name);
}

export function readOffer(from: Message): Offer {
  if (typeof from.device !== 'string') throw wrong('device');
  return {
    fabric: one(from, 'fabric', fabricNames),
    device: from.device.slice(0, 64),
    address: {
      addr: big(from, 'addr'),
      bytes: big(from, 'bytes'),
      rkey: whole(from, 'rkey', { min: 0, max: 2 ** 32 - 1 }),
      queuePairs: list(from, 'queuePairs', limits.queuePairs.max).map((text) => {
        if (typeof text === 'string' && /^([0-9a-f]{2})*$/.test(text) && text.length <= 2 * addressMax)
          return new Uint8Array(Buffer.from(text, 'hex'));
        throw wrong('queuePairs');
      }),
    },
  };
}

const anyCount = { min: 0, max: Number.MAX_SAFE_INTEGER };

export const reportMessage = (report: Report): Message => ({ kind: 'report', ...report });

export function readReport(from: Message): Report {
  const { firstCorrupt, latencyUs, peakNs } = from;
  if (typeof firstCorrupt !== 'string') throw wrong('firstCorrupt');
  if (typeof peakNs !== 'number') throw wrong('peakNs');
  return {
    messages: whole(from, 'messages', anyCount),
    received: whole(from, 'received', anyCount),
    elapsedNs: whole(from, 'elapsedNs', anyCount),
    userNs: whole(from, 'userNs', anyCount),
    systemNs: whole(from, 'systemNs', anyCount),
    corrupt: whole(from, 'corrupt', anyCount),
    firstCorrupt: firstCorrupt.slice(0, 1000),
    latencyUs: readLatency(latencyUs),
    peakNs,
  };
}

function readLatency(given: unknown): Report['latencyUs'] {
  if (given === null) return null;
  if (typeof given !== 'object') throw wrong('latencyUs');
  const found = given as Record<string, unknown>;
  const value = (key: string): number => {
    const number = found[key];
    if (typeof number !== 'number' || !Number.isFinite(number)) throw wrong(`latencyUs.${key}`);
    return number;
  };
  return {
    min: value('min'),
    max: value('max'),
    typical: value('typical'),
    average: value('average'),
    stdev: value('stdev'),
    p90: value('p90'),
    p99: value('p99'),
    p99_9: value('p99_9'),
    p99_99: value('p99_99'),
  };
}

export const sentMessage = (messages: number): Message => ({ kind: 'measured', messages });
export const readSent = (from: Message): number => whole(from, 'messages', anyCount);
