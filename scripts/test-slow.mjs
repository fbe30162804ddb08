/**
 * Runs the suite of long stops, killed peers and real programs through the tunnel (test/slow), which takes
 * about eight minutes: npm run test:slow. Its results are counted like those of the other suites.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';
import { install, PROGRAMS } from './debian.mjs';
import { record, summarize } from './results.mjs';
import { readVitest, reporting } from './vitest-report.mjs';

// The packages of these programs start services, so they may be installed only on a machine of CI.
if (process.env.CI)
  for (const purpose of PROGRAMS) {
    const why = await install(purpose);
    if (why !== '') console.error(`test:slow: ${why}`);
  }

const report = join(root, 'build', 'vitest-slow.json');
rmSync(report, { force: true });
const vitest = ['node', 'node_modules/vitest/vitest.mjs', 'run', '--config', 'test/slow/vitest.config.ts'];
const error = await run([...vitest, ...reporting(report)], { live: true }).then(
  () => '',
  (failed) => failed.message,
);
process.exit(summarize([await record('vitest, long stops', readVitest(report, error))]) ? 0 : 1);
