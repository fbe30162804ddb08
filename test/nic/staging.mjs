/**
 * Measures what staging costs: large calls in one process, on a simulated NIC with memory windows and on the
 * same NIC without them, in turn. Prints the median time of a call in us, by KiB each way. Node 24, which can
 * import TypeScript; `npm run build` first.
 *
 *   node test/nic/staging.mjs
 */
import { buildNics, runOnNics } from './nics.ts';

await buildNics();
for (let round = 1; round <= 3; ++round) {
  for (const nic of ['capable', 'capable!']) {
    const { exposure, medians } = await runOnNics('times', `${nic},${nic}`);
    console.log(`round ${round}, ${exposure}:`, medians);
  }
}
