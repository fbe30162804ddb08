/** What the benchmark must show, as ratios within one run wherever two peers can be compared. Used by the report. */
import type { Row } from './rows.ts';

export interface Verdict {
  goal: string;
  /** What was measured, in words. */
  found: string;
  /** undefined: a row that it needs is not in this run. */
  reached: boolean | undefined;
}

type Find = (scenario: string, peer?: string) => Row | undefined;
interface Goal {
  goal: string;
  judge(find: Find): { found: string; reached: boolean } | undefined;
}

const own = 'rdma-rpc';
/** Mercury 2.4.1 over na+sm, bulk pull of 1 MiB; recorded on this class of machine, not part of the run. */
const mercuryBytesPerSecond = 4.8e9;
/** Below this the kernel's own bookkeeping is what is seen. */
const idleMaxPercent = 0.5;

/** No staging memory, and no receive that has not been used: what is left are tables, and two sockets of Node's. */
const sessionMaxBytes = 512 * 1024;

const times = (ratio: number): string => `${ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(2)} ×`;
const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;

/** Calls/s of `peer` beside those of `base`. `goal`: what is asked, with the share in it. */
function callsShare(
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

const callsShareOfLimit = (scenario: string, least: number): Goal =>
  callsShare(scenario, own, 'limit', least, (share) => `${share} of the limit's calls/s`);
const callsShareOfShm = (scenario: string, least: number): Goal =>
  callsShare(scenario, 'shm-fd', own, least, (share) => `by descriptors ${share} of the calls/s of one user`);
const callsShareOfUnsealed = (scenario: string, least: number): Goal =>
  callsShare(scenario, 'sealed', own, least, (share) => `sealed ${share} of the calls/s without`);

function p50TimesLimit(scenario: string, most: number): Goal {
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

function callsTimesGrpc(scenario: string, least: number, peer = own, base = 'grpc-js'): Goal {
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
function bytesBesideSender(scenario: string, leastBytes: number, leastShare: number): Goal {
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
function besideTimesAlone(scenario: string, alone: string, p50Most: number, p99Most: number): Goal {
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
function besideAtMost(scenario: string, p50Most: number, p99Most: number): Goal {
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
function sealedBytes(scenario: string, leastBytes: number): Goal {
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
function handshakes(scenario: string, mostUs: number, leastPerSecond: number): Goal {
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

function idleAtMost(scenario: string, most: number): Goal {
  return {
    goal: `${scenario}, connected: at most ${most} % of a CPU, both processes together`,
    judge(find) {
      const ours = find(scenario);
      if (ours === undefined) return undefined;
      return { found: `${ours.cpuPercent.toFixed(2)} %`, reached: ours.cpuPercent <= most };
    },
  };
}

const goals: readonly Goal[] = [
  callsShareOfLimit('echo-32B-x256', 0.45),
  callsTimesGrpc('echo-32B-x256', 200),
  callsShareOfLimit('echo-32B-x32', 0.45),
  p50TimesLimit('echo-32B-x1', 2),
  p50TimesLimit('asleep-32B-x1', 2),
  {
    goal: 'asleep-32B-x1: p50 below a bare node:net socket (same placement)',
    judge(find) {
      const ours = find('asleep-32B-x1');
      const bare = find('asleep-32B-x1', 'net bare');
      if (ours === undefined || bare === undefined) return undefined;
      return {
        found: `${ours.p50Us.toFixed(1)} us against ${bare.p50Us.toFixed(1)} us`,
        reached: ours.p50Us < bare.p50Us,
      };
    },
  },
  ...['echo-32B-x1', 'echo-32B-x256', 'asleep-32B-x1'].map((name) => callsShareOfShm(name, 0.8)),
  callsShareOfUnsealed('echo-32B-x256', 0.35),
  callsShareOfUnsealed('tcp-echo-32B-x256', 0.35),
  sealedBytes('put-1MiB-x8', 1.2e9),
  sealedBytes('tcp-put-1MiB-x8', 1.2e9),
  ...['tcp-put-1MiB-x8', 'tcp-echo-1MiB-x8'].map((name) => callsTimesGrpc(name, 5, 'sealed', 'grpc-js tls')),
  callsShare(
    'tcp-echo-32B-x256',
    'tls',
    own,
    0.99,
    (share) => `with TLS on the address ${share} of the calls/s without`,
  ),
  handshakes('tcp-handshakes-x8', 3000, 200),
  callsTimesGrpc('put-1MiB-x8', 20),
  {
    goal: `put-1MiB-x8: at least Mercury's bulk write (${mercuryBytesPerSecond / 1e9} GB/s, an earlier run)`,
    judge(find) {
      const ours = find('put-1MiB-x8');
      if (ours === undefined) return undefined;
      return {
        found: `${(ours.bytesPerSecond / 1e9).toFixed(1)} GB/s`,
        reached: ours.bytesPerSecond >= mercuryBytesPerSecond,
      };
    },
  },
  callsTimesGrpc('echo-64KiB-x8', 20),
  callsTimesGrpc('echo-1MiB-x8', 15),
  ...['echo-32B-x1-beside-16MiB', 'echo-32B-x1-beside-16MiB-elsewhere'].map((name) =>
    besideAtMost(name, 10, 100),
  ),
  idleAtMost('idle', idleMaxPercent),
  {
    goal: 'tcp-echo-32B-x256: at least 600,000 calls/s',
    judge(find) {
      const ours = find('tcp-echo-32B-x256');
      if (ours === undefined) return undefined;
      return {
        found: Math.round(ours.callsPerSecond).toLocaleString('en-GB'),
        reached: ours.callsPerSecond >= 600_000,
      };
    },
  },
  callsTimesGrpc('tcp-echo-32B-x256', 40),
  {
    goal: 'tcp-asleep-32B-x1: p50 at most 1.1 × a bare node:net echo (same placement)',
    judge(find) {
      const ours = find('tcp-asleep-32B-x1');
      const bare = find('tcp-asleep-32B-x1', 'net bare');
      if (ours === undefined || bare === undefined) return undefined;
      const ratio = ours.p50Us / bare.p50Us;
      return {
        found: `${times(ratio)} (${ours.p50Us.toFixed(1)} us against ${bare.p50Us.toFixed(1)} us)`,
        reached: ratio <= 1.1,
      };
    },
  },
  {
    goal: 'tcp-echo-32B-x1: p50 at most 15 us, both sides spinning',
    judge(find) {
      const ours = find('tcp-echo-32B-x1');
      if (ours === undefined) return undefined;
      return { found: `${ours.p50Us.toFixed(1)} us`, reached: ours.p50Us <= 15 };
    },
  },
  bytesBesideSender('tcp-put-1MiB-x8', 2.5e9, 0.7),
  callsTimesGrpc('tcp-put-1MiB-x8', 8),
  bytesBesideSender('tcp-echo-1MiB-x8', 2.5e9, 0.7),
  callsTimesGrpc('tcp-echo-1MiB-x8', 8),
  besideTimesAlone('tcp-echo-32B-x1-beside-64MiB', 'tcp-echo-32B-x1', 5, 20),
  idleAtMost('tcp-idle', idleMaxPercent),
  {
    goal: `tcp-sessions-x64: at most ${sessionMaxBytes / 1024} KiB of the server for an idle session`,
    judge(find) {
      const ours = find('tcp-sessions-x64');
      if (ours === undefined) return undefined;
      return {
        found: `${(ours.bytesPerSession / 1024).toFixed(0)} KiB`,
        reached: ours.bytesPerSession <= sessionMaxBytes,
      };
    },
  },
];

/** One verdict for each goal, in the goals' order. */
export function judge(rows: readonly Row[]): Verdict[] {
  const find: Find = (scenario, peer = own) =>
    rows.find((row) => row.scenario === scenario && row.peer === peer);
  return goals.map(({ goal, judge: judgeGoal }) => {
    const verdict = judgeGoal(find);
    return { goal, found: verdict?.found ?? 'not run', reached: verdict?.reached };
  });
}
