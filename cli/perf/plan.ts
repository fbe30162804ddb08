/**
 * The description of an `rdma-rpc perf` test. The connecting side sends it, and the listening side checks it
 * before use.
 */
import type { PerfStep } from './step.ts';

/** The names of perftest's programs, without their prefix `ib_`. */
export const testNames = [
  'send_lat',
  'send_bw',
  'write_lat',
  'write_bw',
  'read_lat',
  'read_bw',
  'atomic_lat',
  'atomic_bw',
] as const;
export type TestName = (typeof testNames)[number];

export const fabricNames = ['shm', 'tcp', 'verbs', 'bare'] as const;
export type PerfFabric = (typeof fabricNames)[number];
export const connections = ['RC', 'UC', 'UD'] as const;
export type Connection = (typeof connections)[number];
export const atomics = ['fetch_add', 'compare_swap'] as const;

export interface Plan {
  readonly test: TestName;
  readonly connection: Connection;
  readonly atomic: (typeof atomics)[number];
  readonly sizes: readonly number[];
  readonly iterations: number;
  /** The duration of a step. The value is 0 when the step ends with its last iteration. */
  readonly durationMs: number;
  readonly depth: number;
  readonly receiveDepth: number;
  readonly queuePairs: number;
  readonly inlineMax: number;
  /** 0 means perftest's default. */
  readonly signalEvery: number;
  readonly postList: number;
  readonly bidirectional: boolean;
  readonly validate: boolean;
  readonly events: boolean;
  /** Whether the queue pairs of each side take their receives from one shared queue. */
  readonly sharedReceives: boolean;
  /** Whether rdma_cm connects the queue pairs. */
  readonly manager: boolean;
  /** Whether datagrams go to a multicast group that both sides have joined. */
  readonly multicast: boolean;
  readonly seed: number;
}

/** Ranges of numbers, for the flags and for a peer's messages. */
export const limits = {
  bytes: { min: 1, max: 2 ** 30 },
  iterations: { min: 5, max: 100_000_000 },
  /** All samples are kept, so their number is limited. */
  samples: { min: 5, max: 10_000_000 },
  durationMs: { min: 0, max: 24 * 3_600_000 },
  depth: { min: 1, max: 16_384 },
  receiveDepth: { min: 1, max: 16_384 },
  queuePairs: { min: 1, max: 1024 },
  inlineMax: { min: 0, max: 4096 },
  signalEvery: { min: 0, max: 16_384 },
  postList: { min: 1, max: 32 },
  sizes: { min: 1, max: 64 },
  /** Sum of the requests and receives of all queue pairs. */
  requests: { min: 1, max: 1_048_576 },
  /** Bytes of messages in flight, on each side. */
  memory: { min: 0, max: 2 ** 31 },
} as const;

/** Returns the default number of iterations of a test without a duration, as in perftest. */
export const iterationsDefault = (test: TestName): number => (test === 'write_bw' ? 5000 : 1000);
export const sizeDefault = (test: TestName): number =>
  test.startsWith('atomic') ? 8 : isLatency(test) ? 2 : 65_536;
/**
 * Returns the default depth of the send queue. A queue that is longer than the number of requests in flight
 * would only use more memory.
 */
export const depthDefault = (test: TestName): number => (isLatency(test) ? 1 : 128);
/** In a test without SENDs, only the first message of a connection needs a receive. */
export const receiveDepthDefault = (test: TestName): number => (test.startsWith('send') ? 512 : 1);
export const inlineDefault = (test: TestName): number =>
  test === 'send_lat' || test === 'write_lat' ? 236 : 0;

export const isLatency = (test: TestName): boolean => test.endsWith('_lat');

/** Returns a text for people about what is measured and how long that takes. */
export function planText({ test, sizes, iterations, durationMs }: Plan): string {
  const [first] = sizes;
  const what = sizes.length === 1 ? `${first} bytes` : `${sizes.length} sizes`;
  const each = durationMs === 0 ? `${iterations} messages` : `${durationMs / 1000} s`;
  return `${test}: ${what}, ${each}${sizes.length === 1 ? '' : ' of each'}`;
}

/** Above this number of bytes perftest signals each request of a bandwidth test. */
const signalAllBytes = 8192;
const signalEveryDefault = 100;

function signalEvery(plan: Plan, bytes: number): number {
  const { test, depth } = plan;
  if (plan.signalEvery !== 0) return Math.min(plan.signalEvery, depth);
  const each = isLatency(test) ? test !== 'send_lat' : bytes > signalAllBytes;
  return each ? 1 : Math.max(1, Math.min(signalEveryDefault, Math.floor(depth / (isLatency(test) ? 2 : 1))));
}

/** Returns what one side does in a step. */
export function stepOf(plan: Plan, bytes: number, active: boolean): PerfStep {
  const { test } = plan;
  const verb = test.slice(0, test.indexOf('_'));
  return {
    verb: verb === 'atomic' ? plan.atomic : (verb as 'send' | 'write' | 'read'),
    latency: isLatency(test),
    measures: active || plan.bidirectional,
    receives: !active || plan.bidirectional,
    bytes,
    messages: plan.durationMs === 0 ? plan.iterations : limits.iterations.max,
    durationNs: plan.durationMs * 1e6,
    signalEvery: signalEvery(plan, bytes),
    postList: plan.postList,
  };
}

const whyNoManager: Readonly<Record<Exclude<PerfFabric, 'verbs'>, string>> = {
  shm: 'the fabric shm connects by a unix socket, and --rdma_cm connects RDMA devices',
  tcp: 'the fabric tcp connects by TCP, and --rdma_cm connects RDMA devices',
  bare: '--fabric bare connects by the addresses that both sides exchange, not by rdma_cm',
};

/**
 * Returns the reason why these options contradict each other, or undefined. If a device lacks a feature, the
 * device itself reports it.
 */
export function whyNotPlan(plan: Plan, fabric?: PerfFabric): string | undefined {
  const { test, connection } = plan;
  const verb = test.slice(0, test.indexOf('_'));
  const latency = isLatency(test);
  if (latency && plan.bidirectional) return `${test} goes both ways anyway: --bidirectional is for bandwidth`;
  if (latency && plan.queuePairs > 1) return `${test} uses one queue pair: --qp is for bandwidth`;
  if (test === 'write_lat' && plan.events)
    return 'write_lat polls memory, which cannot wake a sleeper: leave out --events, or use send_lat';
  if (latency && plan.durationMs === 0 && plan.iterations > limits.samples.max)
    return `--iters is at most ${limits.samples.max} in latency tests, which keep each sample: --duration keeps none`;
  if (verb === 'atomic' && plan.sizes.some((bytes) => bytes !== 8))
    return 'atomic operations have 8 bytes: leave out --size and --all';
  if (plan.validate && plan.durationMs !== 0)
    return '--validate counts messages: use --iters instead of --duration';
  if (plan.multicast && connection !== 'UD') return '--mcast sends datagrams: give --connection UD';
  if (plan.multicast && plan.queuePairs > 1)
    return 'each queue pair of a group gets all of its messages: --mcast is for one';
  if (plan.manager && connection !== 'RC')
    return `--rdma_cm connects queue pairs of type RC here, not ${connection}`;
  if (plan.manager && fabric !== undefined && fabric !== 'verbs')
    return `${whyNoManager[fabric]}: --fabric verbs`;
  if (connection === 'UD' && verb !== 'send') return `UD carries SENDs only, not ${verb}`;
  if (connection === 'UC' && (verb === 'read' || verb === 'atomic'))
    return `UC carries SENDs and WRITEs only, not ${verb}`;
  if (connection !== 'RC' && plan.validate && !latency)
    return `${connection} may lose messages, so --validate needs RC or a latency test`;
  if (plan.queuePairs * (plan.depth + plan.receiveDepth) > limits.requests.max)
    return `${plan.queuePairs} queue pairs of ${plan.depth} requests and ${plan.receiveDepth} receives are more than ${limits.requests.max} together: a smaller --qp, --tx-depth or --rx-depth`;
  // A queue pair has at least one slot to send from and one to receive in, and two of each when messages are
  // validated (native/perf/layout.h).
  const slots = plan.validate ? 4 : 2;
  if (slots * Math.max(...plan.sizes) * plan.queuePairs > limits.memory.max)
    return `messages of ${Math.max(...plan.sizes)} bytes on ${plan.queuePairs} queue pairs take more than ${limits.memory.max} bytes: a smaller --size or --qp`;
  return undefined;
}
