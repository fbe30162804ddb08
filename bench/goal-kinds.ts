/** The kinds of goals: each compares rows of one run, and says in words what it found. Used by the list of goals. */
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

/** Calls/s of `peer` beside those of `base`. `goal`: what is asked, with the share in it. */
export function callsShare(
  scenario: string,
  peer: string,
  base: string,
  least: number,
  goal: (share: string) => string,
): Goal {
  return {
    goal: `${scenario}: ${goal(`at least ${percent(least)}`)}`,
    judge(find) {
      const one = find(scenario, peer);
      const other = find(scenario, base);
      if (one === undefined || other === undefined) return undefined;
      const share = one.callsPerSecond / other.callsPerSecond;
      return { found: percent(share), reached: share >= least };
    },
  };
}

export const callsShareOfLimit = (scenario: string, least: number): Goal =>
  callsShare(scenario, own, 'limit', least, (share) => `${share} of the limit's calls/s`);
export const callsShareOfShm = (scenario: string, least: number): Goal =>
  callsShare(scenario, 'shm-fd', own, least, (share) => `by descriptors ${share} of the calls/s of one user`);
export const callsShareOfUnsealed = (scenario: string, least: number): Goal =>
  callsShare(scenario, 'sealed', own, least, (share) => `sealed ${share} of the calls/s without`);

/** Calls/s of one scenario beside those of another. */
export function callsShareOfScenario(scenario: string, base: string, least: number): Goal {
  return {
    goal: `${scenario}: at least ${percent(least)} of the calls/s of ${base}`,
    judge(find) {
      const one = find(scenario);
      const other = find(base);
      if (one === undefined || other === undefined) return undefined;
      const share = one.callsPerSecond / other.callsPerSecond;
      return { found: percent(share), reached: share >= least };
    },
  };
}

/** The time of a call, as a multiple of that of another scenario with as many in flight. */
export function timeTimesScenario(scenario: string, base: string, most: number): Goal {
  return {
    goal: `${scenario}: a call takes at most ${most} × the time of ${base}`,
    judge(find) {
      const one = find(scenario);
      const other = find(base);
      if (one === undefined || other === undefined) return undefined;
      const ratio = other.callsPerSecond / one.callsPerSecond;
      return { found: times(ratio), reached: ratio <= most };
    },
  };
}

/** No step between neighbours of `scenarios` that is a cliff; `of`: what grows along them. */
export function noCliff(of: 'in flight' | 'bytes', scenarios: readonly string[]): Goal {
  return {
    goal: `${scenarios[0]} to ${scenarios.at(-1)}: no step of more than ${cliffMin} × between neighbours`,
    judge(find) {
      const rows = scenarios.map((scenario) => find(scenario));
      if (!rows.every((row) => row !== undefined)) return undefined;
      const points = rows.map((row) => ({ ...row, x: of === 'bytes' ? row.payloadBytes : row.inFlight }));
      const [worst] = stepsOf(points, of === 'bytes').sort((one, other) => other.times - one.times);
      if (worst === undefined) return undefined;
      return {
        found: `${worst.times.toFixed(2)} ×, from ${worst.from.scenario} to ${worst.to.scenario}`,
        reached: worst.times <= cliffMin,
      };
    },
  };
}

export function p50TimesLimit(scenario: string, most: number): Goal {
  return {
    goal: `${scenario}: p50 at most ${most} × the limit's (same placement)`,
    judge(find) {
      const ours = find(scenario);
      const limit = find(scenario, 'limit');
      if (ours === undefined || limit === undefined) return undefined;
      const ratio = ours.p50Us / limit.p50Us;
      return {
        found: `${times(ratio)} (${ours.p50Us.toFixed(2)} us, ${ours.placement})`,
        reached: ratio <= most,
      };
    },
  };
}

export function callsTimesGrpc(scenario: string, least: number, peer = own, base = 'grpc-js'): Goal {
  return {
    goal: `${scenario}: ${peer === own ? '' : `${peer} `}at least ${least} × ${base}`,
    judge(find) {
      const ours = find(scenario, peer);
      const grpc = find(scenario, base);
      if (ours === undefined || grpc === undefined) return undefined;
      const ratio = ours.callsPerSecond / grpc.callsPerSecond;
      return { found: times(ratio), reached: ratio >= least };
    },
  };
}

/** At least so many GB/s, or that share of what a C program sends in the same run. */
export function bytesBesideSender(scenario: string, leastBytes: number, leastShare: number): Goal {
  return {
    goal: `${scenario}: at least ${leastBytes / 1e9} GB/s or ${percent(leastShare)} of a plain C sender`,
    judge(find) {
      const ours = find(scenario);
      const sender = find(scenario, 'C sender');
      if (ours === undefined || sender === undefined) return undefined;
      const share = ours.bytesPerSecond / sender.bytesPerSecond;
      return {
        found: `${(ours.bytesPerSecond / 1e9).toFixed(2)} GB/s, ${percent(share)}`,
        reached: ours.bytesPerSecond >= leastBytes || share >= leastShare,
      };
    },
  };
}

/** Of small calls beside a transfer, as a multiple of what they are without it. */
export function besideTimesAlone(scenario: string, alone: string, p50Most: number, p99Most: number): Goal {
  return {
    goal: `${scenario}: p50 at most ${p50Most} ×, p99 at most ${p99Most} × the p50 without`,
    judge(find) {
      const beside = find(scenario);
      const base = find(alone);
      if (beside === undefined || base === undefined) return undefined;
      const [p50, p99] = [beside.p50Us / base.p50Us, beside.p99Us / base.p50Us];
      return { found: `${times(p50)}, ${times(p99)}`, reached: p50 <= p50Most && p99 <= p99Most };
    },
  };
}

/** Of small calls beside a transfer. */
export function besideAtMost(scenario: string, p50Most: number, p99Most: number): Goal {
  return {
    goal: `${scenario}: p50 at most ${p50Most} us, p99 at most ${p99Most} us`,
    judge(find) {
      const beside = find(scenario);
      if (beside === undefined) return undefined;
      const { p50Us, p99Us } = beside;
      return {
        found: `${p50Us.toFixed(1)} us, ${p99Us.toFixed(0)} us`,
        reached: p50Us <= p50Most && p99Us <= p99Most,
      };
    },
  };
}

/** By the CPU time of both sides together, half of it each: what one of them took is not known. */
export function sealedBytes(scenario: string, leastBytes: number): Goal {
  return {
    goal: `${scenario}: sealed at least ${leastBytes / 1e9} GB/s for two CPUs of both sides together`,
    judge(find) {
      const row = find(scenario, 'sealed');
      if (row === undefined) return undefined;
      const bytes = row.bytesPerSecond / (row.cpuPercent / 200);
      const found = `${(bytes / 1e9).toFixed(2)} GB/s (${(row.bytesPerSecond / 1e9).toFixed(2)} with ${row.cpuPercent.toFixed(0)} % of a CPU)`;
      return { found, reached: bytes >= leastBytes };
    },
  };
}

/** Mutually authenticated, one thread on each side. */
export function handshakes(scenario: string, mostUs: number, leastPerSecond: number): Goal {
  return {
    goal: `${scenario}: with TLS at most ${mostUs / 1000} ms of CPU a side, at least ${leastPerSecond} new sessions/s`,
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
    goal: `${scenario}, connected: at most ${most} % of a CPU, both processes together`,
    judge(find) {
      const ours = find(scenario);
      if (ours === undefined) return undefined;
      return { found: `${ours.cpuPercent.toFixed(2)} %`, reached: ours.cpuPercent <= most };
    },
  };
}
