/**
 * Runs the suite of long stops (test/slow), which takes about three minutes: npm run test:slow. Its tests are
 * counted like the others.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';
import { record, summarize } from './results.mjs';
import { readVitest, reporting } from './vitest-report.mjs';

const report = join(root, 'build', 'vitest-slow.json');
rmSync(report, { force: true });
const vitest = ['node', 'node_modules/vitest/vitest.mjs', 'run', '--config', 'test/slow/vitest.config.ts'];
const error = await run([...vitest, ...reporting(report)], { live: true }).then(
  () => '',
  (failed) => failed.message,
);
process.exit(summarize([await record('vitest, long stops', readVitest(report, error))]) ? 0 : 1);
