/**
 * The goals of the benchmark, as ratios within one run wherever two peers can be compared. The report uses
 * this file.
 */
import {
  besideAtMost,
  besideTimesAlone,
  bytesBesideSender,
  callsShare,
  callsShareOfLimit,
  callsShareOfScenario,
  callsShareOfShm,
  callsShareOfUnsealed,
  callsTimesGrpc,
  type Find,
  type Goal,
  handshakes,
  idleAtMost,
  noCliff,
  noDrop,
  own,
  p50TimesLimit,
  plainBeside,
  restAtMost,
  sealedBytes,
  times,
  timeTimesScenario,
} from './goal-kinds.ts';
import type { Row } from './rows.ts';

export interface Verdict {
  goal: string;
  /** The measured figures, in words. */
  found: string;
  /** Undefined when a row that the goal needs is missing in this run. */
  reached: boolean | undefined;
}

/**
 * The rate of Mercury 2.4.1 over na+sm, with bulk pull of 1 MiB. It was recorded on this class of machine,
 * and is not part of the run.
 */
const mercuryBytesPerSecond = 4.8e9;
/** Below this value, the kernel's own bookkeeping dominates. */
const idleMaxPercent = 0.5;
/**
 * Without staging memory and without unused receives, the rest consists of tables and two sockets of Node's.
 */
const sessionMaxBytes = 512 * 1024;

const goals: readonly Goal[] = [
  ...['', 'tcp-'].flatMap((network) =>
    ['echo-64KiB', 'echo-1MiB', 'put-64KiB', 'put-1MiB'].map((load) =>
      plainBeside(`${network}plain-${load}-x8`, 0.6, 0.3, 8),
    ),
  ),
  noDrop('plain-echo-32B-x64-mixed-1MiB', 'plain-echo-32B-x8-mixed-1MiB', 'quick start'),
  noDrop('echo-32B-x64-mixed-1MiB', 'echo-32B-x8-mixed-1MiB'),
  restAtMost('rest-after-1MiB-x8', 1.2),
  restAtMost('tcp-rest-after-1MiB-x8', 1.2),
  callsShareOfLimit('echo-32B-x256', 0.7),
  callsTimesGrpc('echo-32B-x256', 400),
  callsShareOfLimit('echo-32B-x32', 0.75),
  p50TimesLimit('echo-32B-x1', 1.2),
  p50TimesLimit('asleep-32B-x1', 1.1),
  callsShareOfLimit('put-4KiB-x8', 0.8),
  callsShareOfLimit('put-64KiB-x8', 0.85),
  callsShareOfLimit('echo-4KiB-x8', 0.7),
  callsShareOfLimit('echo-64KiB-x8', 0.6),
  callsShareOfScenario('echo-200B-x256', 'echo-32B-x256', 0.8),
  callsShareOfScenario('echo-1KiB-x256', 'echo-32B-x256', 0.6),
  timeTimesScenario('echo-9KiB-x8', 'echo-8000B-x8', 1.3),
  noCliff([1, 4, 16, 32, 64, 256, 512, 1024, 4096].map((each) => `echo-32B-x${each}`)),
  // The time for so few bytes is negligible.
  noCliff(['32B', '200B', '1KiB'].map((each) => `echo-${each}-x256`)),
  noCliff(
    ['4KiB', '8000B', '9KiB', '16KiB', '64KiB', '1MiB'].map((each) => `echo-${each}-x8`),
    true,
  ),
  {
    goal: 'asleep-32B-x1: p50 below that of a bare node:net socket (same placement)',
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
  callsShareOfUnsealed('tcp-echo-32B-x256', 0.6),
  sealedBytes('put-1MiB-x8', 1.2e9),
  sealedBytes('tcp-put-1MiB-x8', 1.2e9),
  ...['tcp-put-1MiB-x8', 'tcp-echo-1MiB-x8'].map((name) => callsTimesGrpc(name, 5, 'sealed', 'grpc-js tls')),
  callsShare(
    'tcp-echo-32B-x256',
    'tls',
    own,
    0.99,
    (share) => `with TLS ${share} of the calls/s without TLS`,
  ),
  handshakes('tcp-handshakes-x8', 3000, 200),
  callsTimesGrpc('open-call-close-x1', 0.8),
  callsTimesGrpc('put-1MiB-x8', 20),
  {
    goal: `put-1MiB-x8: at least the ${mercuryBytesPerSecond / 1e9} GB/s of Mercury's bulk write in an earlier run`,
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
    besideAtMost(name, 5, 60, 500),
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
  callsShare(
    'tcp-echo-32B-x256',
    own,
    'net+protobufjs',
    2,
    (share) => `${share} of the calls/s of a program with node:net and protobufjs`,
  ),
  {
    goal: 'tcp-asleep-32B-x1: p50 at most 1.1 × that of a bare node:net echo (same placement)',
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
    goal: `tcp-sessions-x64: at most ${sessionMaxBytes / 1024} KiB of the server's memory for an idle session`,
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

/** Returns one verdict for each goal, in the goals' order. */
export function judge(rows: readonly Row[]): Verdict[] {
  const find: Find = (scenario, peer = own) =>
    rows.find((row) => row.scenario === scenario && row.peer === peer);
  return goals.map(({ goal, judge: judgeGoal }) => {
    const verdict = judgeGoal(find);
    return { goal, found: verdict?.found ?? 'not run', reached: verdict?.reached };
  });
}
