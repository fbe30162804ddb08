/**
 * The measured scenarios, each with its load and its placement. The orchestrator and the client process use
 * them.
 */

import type { Placement } from './placement.ts';

export interface Scenario {
  /**
   * The name that rows and `--only` use: `<kind>-<payload>-x<in flight>`, `plain-…` for scenarios as in the
   * quick start, `tcp-…` over TCP.
   */
  name: string;
  kind: 'echo' | 'put' | 'idle' | 'rest' | 'sessions' | 'handshakes' | 'opens';
  /** 'host': shared memory or unix sockets. 'tcp': TCP over loopback, for every peer. */
  network: 'host' | 'tcp';
  payloadBytes: number;
  /**
   * Number of calls in flight at once. Each of these workers starts its next call when its last call has been
   * answered.
   */
  inFlight: number;
  /**
   * Size in bytes of the puts that run one after another beside the calls, and that are not counted among
   * them; 0 when there are no puts.
   */
  besideBytes: number;
  /**
   * In `mixedTenths` of ten calls, the payload has this number of bytes in place of `payloadBytes`; 0 when no
   * call has such a payload.
   */
  mixedBytes: number;
  mixedTenths: number;
  /**
   * Number of connections, over which the calls are spread worker by worker. In kind 'sessions', it is the
   * number of connections that stay idle.
   */
  sessions: number;
  /**
   * Whether the scenario is as in the quick start. Both processes are new, and their first second counts as a
   * separate figure. A program that uses none of our memory functions is compared with a program that returns
   * all memory.
   */
  plain: boolean;
  /** Whether the scenario is only for `stepPeers`, as a step between the rows that all peers run. */
  step: boolean;
  /**
   * With 'event' neither side spins. The setting has no effect on the peers on sockets, which always sleep.
   */
  polling: 'adaptive' | 'event';
  /**
   * Whether both processes share one CPU. Otherwise each process has CPUs of its own (bench/placement.ts).
   */
  together: boolean;
}

const KiB = 1024;
const MiB = 1024 * KiB;

export function load(
  kind: 'echo' | 'put',
  payload: string,
  payloadBytes: number,
  inFlight: number,
): Scenario {
  return {
    name: `${kind}-${payload}-x${inFlight}`,
    kind,
    network: 'host',
    payloadBytes,
    inFlight,
    besideBytes: 0,
    mixedBytes: 0,
    mixedTenths: 0,
    sessions: 1,
    plain: false,
    step: false,
    polling: 'adaptive',
    together: false,
  };
}

/** Returns a scenario with small calls, one at a time, while one transfer follows another. */
function beside(payload: string, besideBytes: number): Scenario {
  return { ...load('echo', '32B', 32, 1), name: `echo-32B-x1-beside-${payload}`, besideBytes };
}

/**
 * Returns the scenario of beside() in which the transfers use a separate connection, from the same process.
 */
function besideAnother(payload: string, besideBytes: number): Scenario {
  const scenario = beside(payload, besideBytes);
  return { ...scenario, name: `${scenario.name}-elsewhere`, sessions: 2 };
}

/** Returns a scenario with small calls, among which `mixedTenths` of ten are large. */
export function mixed(small: Scenario, mixedTenths: number, large: string, mixedBytes: number): Scenario {
  return { ...small, name: `${small.name}-mixed-${large}`, mixedBytes, mixedTenths };
}

const idle: Scenario = { ...load('echo', '', 0, 0), name: 'idle', kind: 'idle' };
/** The number of sessions is large enough for their memory to be visible beside that of the process. */
const idleSessions = 64;
/**
 * New connections, a fixed number at once. They show the cost of each connection, from its first message to
 * its end. Both sides sleep while they wait, because iterations that find nothing would count.
 */
const handshakes: Scenario = {
  ...load('echo', '', 0, 8),
  name: 'handshakes-x8',
  kind: 'handshakes',
  polling: 'event',
};
/**
 * Each call has a connection of its own, which is closed when the call has been answered. No other connection
 * is open.
 */
const opens: Scenario = { ...load('echo', '32B', 32, 1), name: 'open-call-close-x1', kind: 'opens' };
const asleep: Scenario = {
  ...load('echo', '32B', 32, 1),
  name: 'asleep-32B-x1',
  polling: 'event',
  together: true,
};

function plain(scenario: Scenario): Scenario {
  return { ...scenario, name: `plain-${scenario.name}`, plain: true };
}

function overTcp(scenario: Scenario): Scenario {
  return { ...scenario, name: `tcp-${scenario.name}`, network: 'tcp' };
}

const plainLoads: readonly Scenario[] = (['echo', 'put'] as const).flatMap((kind) =>
  [load(kind, '20KiB', 20 * KiB, 8), load(kind, '64KiB', 64 * KiB, 8), load(kind, '1MiB', MiB, 8)].map(plain),
);

/**
 * The load of a service with documents or pictures. Most calls are small, and most bytes are in the large
 * calls.
 */
const mixes: readonly Scenario[] = [8, 64].map((inFlight) =>
  mixed(load('echo', '32B', 32, inFlight), 3, '1MiB', MiB),
);

/**
 * Large calls of a program as in the quick start, followed by idle time. The memory before and after is
 * compared.
 */
const rest: Scenario = {
  ...load('echo', '1MiB', MiB, 8),
  name: 'rest-after-1MiB-x8',
  kind: 'rest',
  plain: true,
};

export const scenarios: readonly Scenario[] = [
  ...plainLoads,
  ...plainLoads.map(overTcp),
  ...mixes.map(plain),
  rest,
  overTcp(rest),
  load('echo', '32B', 32, 1),
  load('echo', '32B', 32, 32),
  load('echo', '32B', 32, 256),
  ...[
    ...[4, 16, 64, 512, 1024, 4096].map((inFlight) => load('echo', '32B', 32, inFlight)),
    load('echo', '200B', 200, 256),
    load('echo', '1KiB', KiB, 256),
    load('echo', '8000B', 8000, 8),
    load('echo', '9KiB', 9 * KiB, 8),
    load('echo', '16KiB', 16 * KiB, 8),
    mixed(load('echo', '64B', 64, 32), 2, '128KiB', 128 * KiB),
    ...mixes,
  ].map((scenario) => ({ ...scenario, step: true })),
  load('put', '4KiB', 4 * KiB, 8),
  load('put', '64KiB', 64 * KiB, 8),
  load('put', '1MiB', MiB, 8),
  load('put', '16MiB', 16 * MiB, 8),
  load('echo', '4KiB', 4 * KiB, 8),
  load('echo', '64KiB', 64 * KiB, 8),
  load('echo', '1MiB', MiB, 8),
  // Two calls are in flight: a client then holds 64 MiB of requests and answers, which is a quarter of the
  // default arena.
  load('echo', '16MiB', 16 * MiB, 2),
  beside('1MiB', MiB),
  beside('16MiB', 16 * MiB),
  besideAnother('16MiB', 16 * MiB),
  idle,
  asleep,
  opens,
  ...[
    load('echo', '32B', 32, 1),
    load('echo', '32B', 32, 256),
    load('put', '1MiB', MiB, 8),
    load('echo', '1MiB', MiB, 8),
    beside('1MiB', MiB),
    beside('16MiB', 16 * MiB),
    besideAnother('16MiB', 16 * MiB),
    beside('64MiB', 64 * MiB),
    idle,
    asleep,
    handshakes,
    { ...idle, name: `sessions-x${idleSessions}`, kind: 'sessions', sessions: idleSessions } as const,
  ].map(overTcp),
];

/**
 * Returns the placement of a row's processes, in words, because a latency is quoted only together with it.
 * `placement` is undefined where processes are not pinned. `polls` says whether the peer spins when `polling`
 * is 'adaptive'. `threads` is true when its two sides are threads of one process.
 */
export function placementOf(
  { polling, together }: Pick<Scenario, 'polling' | 'together'>,
  placement: Placement | undefined,
  { polls, threads = false }: { readonly polls: boolean; readonly threads?: boolean | undefined },
): string {
  const waiting = polls && polling === 'adaptive' ? 'spins, then sleeps' : 'sleeps';
  if (placement === undefined) return `free, ${waiting}`;
  if (together) return `both on CPU ${placement.one}, ${waiting}`;
  return `${threads ? `two threads on CPUs ${placement.all}` : 'apart'}, ${waiting}`;
}
