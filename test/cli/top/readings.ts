/** Contains readings of simulated processes, for tests of the output of `rdma-rpc top`. */
import type { ContextCounters, MethodCounters, SessionCounters } from '../../../runtime/counters/page.ts';
import type { ProcessCounters } from '../../../runtime/counters/processes.ts';

export const bucketNs = Array.from({ length: 60 }, (_, bucket) => 1000 * (bucket + 1));

export function method(given: Partial<MethodCounters> = {}): MethodCounters {
  return {
    name: 'kv.v1.Kv/Get',
    side: 'server',
    calls: 0,
    failed: 0,
    totalNs: 0,
    buckets: bucketNs.map(() => 0),
    ...given,
  };
}

export function session(given: Partial<SessionCounters> = {}): SessionCounters {
  return {
    state: 'ready',
    side: 'server',
    number: 4096,
    peer: 'unix:/run/kv.sock (pid 77)',
    security: 'bound',
    callsInFlight: 3,
    credits: 270,
    creditsMax: 272,
    waiting: 0,
    framesIn: 0,
    framesOut: 0,
    bytesIn: 0,
    bytesOut: 0,
    stalls: 0,
    stalledMs: 0,
    ...given,
  };
}

export function context(given: Partial<ContextCounters> = {}): ContextCounters {
  return {
    id: 1,
    fabric: 'shm',
    device: 'shm',
    turnNs: 0,
    awake: false,
    counters: {},
    sessions: [],
    methods: [],
    bucketNs,
    ...given,
  };
}

export function reading(given: Partial<ProcessCounters> = {}): ProcessCounters {
  return {
    pid: 4711,
    command: 'node server.js',
    state: 'S',
    startTicks: 8000,
    cpuMs: 1000,
    rssBytes: 60_000_000,
    atNs: 0,
    contexts: [context()],
    ...given,
  };
}
