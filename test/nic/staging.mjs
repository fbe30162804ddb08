/**
 * Measures the cost of staging. The script makes large calls in one process, alternately on a simulated NIC
 * with memory windows and on the same NIC without them. The script prints the median time of a call in us, by
 * KiB each way. The script needs Node 24, which can import TypeScript, and the output of `npm run build`. The
 * script is run as: node test/nic/staging.mjs
 */
import { buildNics, runOnNics } from './nics.ts';

await buildNics();
for (let round = 1; round <= 3; ++round) {
  for (const nic of ['capable', 'capable!']) {
    const { exposure, medians } = await runOnNics('times', `${nic},${nic}`);
    console.log(`round ${round}, ${exposure}:`, medians);
  }
}
