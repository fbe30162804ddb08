/**
 * The kinds of goals. Each kind compares rows of one run, and describes the result in words. The list of
 * goals uses them.
 */
import { cliffMin, stepsOf } from './cliffs.ts';
import type { Row } from './rows.ts';

export type Find = (scenario: string, peer?: string) => Row | undefined;
export interface Goal {
  goal: string;
  judge(find: Find): { found: string; reached: boolean } | undefined;
}

export const own = 'rdma-rpc';

export const times = (ratio: number): string => `${ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(2)} ×`;
const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;

/** A scenario and a peer. */
type Place = readonly [scenario: string, peer?: string];

/** Compares one row with another. If either row is missing, the goal cannot be judged. */
function besideAnother(
  goal: string,
  place: Place,
  base: Place,
  compare: (row: Row, base: Row) => { found: string; reached: boolean },
): Goal {
  return {
    goal,
    judge(find) {
      const row = find(...place);
      const other = find(...base);
      return row === undefined || other === undefined ? undefined : compare(row, other);
    },
  };
}

/** Returns a goal for the calls/s of one row as a share of another row's. */
const callsShareOf = (goal: string, place: Place, base: Place, least: number): Goal =>
  besideAnother(goal, place, base, (row, other) => {
    const share = row.callsPerSecond / other.callsPerSecond;
    return { found: percent(share), reached: share >= least };
  });

/**
 * Returns a goal for the calls/s of `peer`, compared with those of `base`. `goal` is the requirement in
 * words, including the share.
 */
export const callsShare = (
  scenario: string,
  peer: string,
  base: string,
  least: number,
  goal: (share: string) => string,
): Goal =>
  callsShareOf(
    `${scenario}: ${goal(`at least ${percent(least)}`)}`,
    [scenario, peer],
    [scenario, base],
    least,
  );

export const callsShareOfLimit = (scenario: string, least: number): Goal =>
  callsShare(scenario, own, 'limit', least, (share) => `${share} of the limit's calls/s`);
export const callsShareOfShm = (scenario: string, least: number): Goal =>
  callsShare(scenario, 'shm-fd', own, least, (share) => `over shm-fd ${share} of the calls/s over shm`);
export const callsShareOfUnsealed = (scenario: string, least: number): Goal =>
  callsShare(
    scenario,
    'sealed',
    own,
    least,
    (share) => `sealed ${share} of the calls/s of unsealed sessions`,
  );

/** Returns a goal for the calls/s of one scenario, compared with those of another. */
export const callsShareOfScenario = (scenario: string, base: string, least: number): Goal =>
  callsShareOf(
    `${scenario}: at least ${percent(least)} of the calls/s of ${base}`,
    [scenario],
    [base],
    least,
  );

/**
 * Goals for a program as in the quick start, compared with the same load when all memory is returned. The
 * three goals are for the program's steady rate, for its first second as a share of the other program's
 * steady rate, and for its first second as a multiple of grpc-js' first second.
 */
export function plainBeside(
  scenario: string,
  steadyLeast: number,
  firstLeast: number,
  grpcLeast: number,
): Goal {
  return {
    goal: `${scenario}: at least ${percent(steadyLeast)} of the steady rate with everything given back; in the first second at least ${percent(firstLeast)} of that rate, and ${grpcLeast} × the first second of grpc-js`,
    judge(find) {
      const [row, back, grpc] = ['quick start', own, 'grpc-js'].map((peer) => find(scenario, peer));
      if (row === undefined || back === undefined || grpc === undefined) return undefined;
      const steady = row.callsPerSecond / back.callsPerSecond;
      const first = row.firstCallsPerSecond / back.callsPerSecond;
      const ofGrpc = row.firstCallsPerSecond / grpc.firstCallsPerSecond;
      return {
        found: `${percent(steady)}, ${percent(first)}, ${times(ofGrpc)}`,
        reached: steady >= steadyLeast && first >= firstLeast && ofGrpc >= grpcLeast,
      };
    },
  };
}

/**
 * Returns a goal for the memory of both processes of a program as in the quick start, some seconds after
 * large calls.
 */
export function restAtMost(scenario: string, most: number): Goal {
  return {
    goal: `${scenario}: after large calls a program as in the quick start has at most ${most} × the memory that it had before them`,
    judge(find) {
      const row = find(scenario, 'quick start');
      if (row === undefined) return undefined;
      const grpc = find(scenario, 'grpc-js');
      const beside = grpc && `; grpc-js ${times(grpc.restTimes)}`;
      return { found: `${times(row.restTimes)}${beside ?? ''}`, reached: row.restTimes <= most };
    },
  };
}

/**
 * Returns a goal for the time of a call, as a multiple of the time in another scenario with the same number
 * of calls in flight.
 */
export function timeTimesScenario(scenario: string, base: string, most: number): Goal {
  const goal = `${scenario}: a call takes at most ${most} × the time of ${base}`;
  return besideAnother(goal, [scenario], [base], (row, other) => {
    const ratio = other.callsPerSecond / row.callsPerSecond;
    return { found: times(ratio), reached: ratio <= most };
  });
}

/**
 * Returns a goal that no step between neighbours of `scenarios` is a cliff. `bytes` is as for `stepsOf`. The
 * last scenario is then listed because it usually has the best byte rate.
 */
export function noCliff(scenarios: readonly string[], bytes = false): Goal {
  return {
    goal: `${scenarios[0]} to ${scenarios.at(-1)}: no step of more than ${cliffMin} × between neighbours`,
    judge(find) {
      const rows = scenarios.map((scenario) => find(scenario));
      if (!rows.every((row) => row !== undefined)) return undefined;
      const points = rows.map((row) => ({ ...row, x: row.payloadBytes }));
      const [worst] = stepsOf(points, bytes).sort((one, other) => other.times - one.times);
      if (worst === undefined) return undefined;
      return {
        found: `${worst.times.toFixed(2)} ×, from ${worst.from.scenario} to ${worst.to.scenario}`,
        reached: worst.times <= cliffMin,
      };
    },
  };
}

/** Returns a goal that no cliff lies between `base` and the same load with more calls in flight. */
export function noDrop(scenario: string, base: string, peer = own): Goal {
  const goal = `${scenario}${peer === own ? '' : ` (${peer})`}: a call takes at most ${cliffMin} × the time of ${base}`;
  return besideAnother(goal, [scenario, peer], [base, peer], (row, other) => {
    const ratio = other.callsPerSecond / row.callsPerSecond;
    return { found: `${times(ratio)} the time of a call`, reached: ratio <= cliffMin };
  });
}

export function p50TimesLimit(scenario: string, most: number): Goal {
  const goal = `${scenario}: p50 at most ${most} × the limit's (same placement)`;
  return besideAnother(goal, [scenario], [scenario, 'limit'], ({ p50Us, placement }, limit) => {
    const ratio = p50Us / limit.p50Us;
    return { found: `${times(ratio)} (${p50Us.toFixed(2)} us, ${placement})`, reached: ratio <= most };
  });
}

export function callsTimesGrpc(scenario: string, least: number, peer = own, base = 'grpc-js'): Goal {
  const goal = `${scenario}: ${peer === own ? '' : `${peer} `}at least ${least} × the calls/s of ${base}`;
  return besideAnother(goal, [scenario, peer], [scenario, base], (row, grpc) => {
    const ratio = row.callsPerSecond / grpc.callsPerSecond;
    return { found: times(ratio), reached: ratio >= least };
  });
}

/**
 * Returns a goal of at least this number of GB/s, or of at least this share of what a C program sends in the
 * same run.
 */
export function bytesBesideSender(scenario: string, leastBytes: number, leastShare: number): Goal {
  const goal = `${scenario}: at least ${leastBytes / 1e9} GB/s, or ${percent(leastShare)} of the rate of a plain C sender`;
  return besideAnother(goal, [scenario], [scenario, 'C sender'], ({ bytesPerSecond }, sender) => {
    const share = bytesPerSecond / sender.bytesPerSecond;
    return {
      found: `${(bytesPerSecond / 1e9).toFixed(2)} GB/s, ${percent(share)}`,
      reached: bytesPerSecond >= leastBytes || share >= leastShare,
    };
  });
}

/**
 * Returns a goal for the latency of small calls beside a transfer, as a multiple of their latency without it.
 */
export function besideTimesAlone(scenario: string, alone: string, p50Most: number, p99Most: number): Goal {
  const goal = `${scenario}: p50 at most ${p50Most} × and p99 at most ${p99Most} × the p50 of ${alone}`;
  return besideAnother(goal, [scenario], [alone], (row, base) => {
    const [p50, p99] = [row.p50Us / base.p50Us, row.p99Us / base.p50Us];
    return { found: `${times(p50)}, ${times(p99)}`, reached: p50 <= p50Most && p99 <= p99Most };
  });
}

/** Returns a goal for the latency of small calls beside a transfer. */
export function besideAtMost(scenario: string, p50Most: number, p99Most: number, p999Most: number): Goal {
  return {
    goal: `${scenario}: p50 at most ${p50Most} us, p99 at most ${p99Most} us, p99.9 at most ${p999Most} us`,
    judge(find) {
      const beside = find(scenario);
      if (beside === undefined) return undefined;
      const { p50Us, p99Us, p999Us } = beside;
      return {
        found: `${p50Us.toFixed(1)} us, ${p99Us.toFixed(0)} us, ${p999Us.toFixed(0)} us`,
        reached: p50Us <= p50Most && p99Us <= p99Most && p999Us <= p999Most,
      };
    },
  };
}

/**
 * The goal uses the CPU time of both sides together, half of it for each side, because the time of one side
 * alone is not known.
 */
export function sealedBytes(scenario: string, leastBytes: number): Goal {
  return {
    goal: `${scenario}: sealed at least ${leastBytes / 1e9} GB/s when both sides together use two CPUs fully`,
    judge(find) {
      const row = find(scenario, 'sealed');
      if (row === undefined) return undefined;
      const bytes = row.bytesPerSecond / (row.cpuPercent / 200);
      const found = `${(bytes / 1e9).toFixed(2)} GB/s (${(row.bytesPerSecond / 1e9).toFixed(2)} with ${row.cpuPercent.toFixed(0)} % of a CPU)`;
      return { found, reached: bytes >= leastBytes };
    },
  };
}

/** Returns a goal for mutually authenticated handshakes, with one thread on each side. */
export function handshakes(scenario: string, mostUs: number, leastPerSecond: number): Goal {
  return {
    goal: `${scenario}: with TLS at most ${mostUs / 1000} ms of CPU time on each side, and at least ${leastPerSecond} new sessions/s`,
    judge(find) {
      const row = find(scenario, 'tls');
      if (row === undefined) return undefined;
      const { clientCpuUs, serverCpuUs, callsPerSecond } = row;
      const sides = (client: number, server: number): string =>
        `${(client / 1000).toFixed(1)} ms of the client, ${(server / 1000).toFixed(1)} ms of the server`;
      const bare = find(scenario, 'tls bare');
      const ofNode = bare && `; node:tls alone ${sides(bare.clientCpuUs, bare.serverCpuUs)}`;
      return {
        found: `${sides(clientCpuUs, serverCpuUs)}, ${Math.round(callsPerSecond)}/s${ofNode ?? ''}`,
        reached: clientCpuUs <= mostUs && serverCpuUs <= mostUs && callsPerSecond >= leastPerSecond,
      };
    },
  };
}

export function idleAtMost(scenario: string, most: number): Goal {
  return {
    goal: `${scenario}: two connected processes use at most ${most} % of a CPU together`,
    judge(find) {
      const ours = find(scenario);
      if (ours === undefined) return undefined;
      return { found: `${ours.cpuPercent.toFixed(2)} %`, reached: ours.cpuPercent <= most };
    },
  };
}
