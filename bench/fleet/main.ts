/**
 * The simulated fleet and the cost of picks. `npm run bench:fleet [-- --seed N]` prints the behaviour of
 * 10,000 nodes when a region restarts, the latencies of policies, how subsets and keys are spread, and how
 * long a pick takes.
 */
import { parseArgs } from 'node:util';
import { picks } from './picks.ts';
import { evenness, hotKey, type LoadShape, latencies, regionRestart, subsets } from './scenarios.ts';

const { values } = parseArgs({ options: { seed: { type: 'string', default: '1' } } });
const seed = Number(values.seed);
const fleet = { seed, clients: 9_900, servers: 100, subset: 10 };

console.log(`seed ${seed}, ${fleet.clients} clients, ${fleet.servers} servers, subsets of ${fleet.subset}\n`);
for (const downMs of [1_500, 2_000, 3_000, 4_000, 5_000, 8_000, 15_000, 30_000, 120_000]) {
  const { perSecond, lost, calls, failed } = regionRestart(fleet, downMs);
  const { fullest, steady } = evenness(perSecond, lost);
  console.log(
    `region down for ${downMs / 1000} s: ${lost} connections lost, fullest second ${fullest}, ` +
      `even rate ${steady.toFixed(0)}/s, ratio ${(fullest / steady).toFixed(2)}; ${failed} of ${calls} calls failed`,
  );
}

const shapes: readonly [string, LoadShape][] = [
  ['equal servers', { slowShare: 0, slowness: 1, burst: 1, utilization: 0.7 }],
  ['a tenth is 1.5 times slower', { slowShare: 0.1, slowness: 1.5, burst: 1, utilization: 0.6 }],
  ['a tenth is 3 times slower', { slowShare: 0.1, slowness: 3, burst: 1, utilization: 0.6 }],
  ['bursts of 20 calls', { slowShare: 0, slowness: 1, burst: 20, utilization: 0.5 }],
];
const sizes = [
  { name: '10 clients', clients: 10, servers: 20, subset: 0, seconds: 20 },
  { name: '1,000 clients', clients: 1000, servers: 20, subset: 0, seconds: 20 },
  { name: '1,000 clients, subsets of 10', clients: 1000, servers: 20, subset: 10, seconds: 20 },
];
console.log(
  '\n| clients of 20 servers | load | policy | p50 ms | p99 ms | p99.9 ms |\n|---|---|---|---|---|---|',
);
for (const { name, seconds, ...size } of sizes)
  for (const [load, shape] of shapes)
    for (const policy of ['round-robin', 'least-request'] as const) {
      const { p50, p99, p999 } = latencies({ seed, ...size }, policy, shape, seconds);
      const cells = [p50, p99, p999].map((ms) => ms.toFixed(1));
      console.log(`| ${name} | ${load} | ${policy} | ${cells.join(' | ')} |`);
    }

const { maxToMean, moved, share } = subsets({ ...fleet, clients: 1000 });
console.log(
  `\nsubsets of 10 of 100, 1,000 clients: max/mean ${maxToMean.toFixed(2)}, one leaves: ${moved} move of its ${share}`,
);
const plain = hotKey(seed, 1000, 40_000);
const bounded = hotKey(seed, 1.25, 40_000);
console.log(
  `half of the load on one key: busiest ${bounded.busiestToMean.toFixed(2)} times the mean (plain ${plain.busiestToMean.toFixed(2)}), ` +
    `hit rate ${bounded.hitRate.toFixed(3)} (plain ${plain.hitRate.toFixed(3)})\n`,
);

console.log('| policy | addresses | ns for a pick |\n|---|---|---|');
for (const { policy, addresses, ns } of picks())
  console.log(`| ${policy} | ${addresses} | ${ns.toFixed(0)} |`);
