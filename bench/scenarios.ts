/** What is measured: each scenario with its load and its placement. Used by the orchestrator and by the client process. */

export interface Scenario {
  /** `<kind>-<payload>-x<in flight>`, the name that rows and `--only` use. */
  name: string;
  kind: 'echo' | 'put' | 'idle';
  payloadBytes: number;
  /** Calls in flight at once; each of these workers starts its next call when its last one has been answered. */
  inFlight: number;
  /** 'event': neither side spins. Says nothing to the peers on sockets, which always sleep. */
  polling: 'adaptive' | 'event';
  /** Both processes on CPU 0, or wherever the scheduler puts them. */
  pinned: boolean;
}

const KiB = 1024;
const MiB = 1024 * KiB;

function load(kind: 'echo' | 'put', payload: string, payloadBytes: number, inFlight: number): Scenario {
  return {
    name: `${kind}-${payload}-x${inFlight}`,
    kind,
    payloadBytes,
    inFlight,
    polling: 'adaptive',
    pinned: false,
  };
}

export const scenarios: readonly Scenario[] = [
  load('echo', '32B', 32, 1),
  load('echo', '32B', 32, 32),
  load('echo', '32B', 32, 256),
  load('put', '4KiB', 4 * KiB, 8),
  load('put', '64KiB', 64 * KiB, 8),
  load('put', '1MiB', MiB, 8),
  load('put', '16MiB', 16 * MiB, 8),
  load('echo', '4KiB', 4 * KiB, 8),
  load('echo', '64KiB', 64 * KiB, 8),
  load('echo', '1MiB', MiB, 8),
  // Two of them: a client then holds 64 MiB of requests and answers, a quarter of the default arena.
  load('echo', '16MiB', 16 * MiB, 2),
  { name: 'idle', kind: 'idle', payloadBytes: 0, inFlight: 0, polling: 'adaptive', pinned: false },
  { name: 'asleep-32B-x1', kind: 'echo', payloadBytes: 32, inFlight: 1, polling: 'event', pinned: true },
];

/** Where the processes of a row ran, in words: no latency is quoted without it. */
export function placementOf(scenario: Scenario, polls: boolean): string {
  const waiting = polls && scenario.polling === 'adaptive' ? 'spins, then sleeps' : 'sleeps';
  return `${scenario.pinned ? 'both on CPU 0' : 'free'}, ${waiting}`;
}
