/**
 * Tests today's build with the previous one (builds.mjs): every kind of call in both directions, and a
 * rolling upgrade and a rollback under load. `npm run test:upgrade` runs this script. The first run builds
 * the other commit, which takes some minutes; later runs find it in build/against.
 */
import { NOT_RUN, record } from '../../scripts/results.mjs';
import { builds } from './builds.mjs';
import { matrix } from './matrix.mjs';
import { rolling } from './rolling.mjs';

const suite = 'upgrade';
const result = { passed: 0, failed: 0, failures: [] };

function report(name, why) {
  if (why === undefined) {
    ++result.passed;
    return;
  }
  ++result.failed;
  result.failures.push(`${name}: ${why.split('\n')[0]}`);
  console.log(`✗ ${name}: ${why}`);
}

const both = await builds();
if (typeof both === 'string') {
  record(suite, { whyNot: [both] });
  console.log(`not run: ${both}`);
  process.exit(NOT_RUN);
}
for (const part of [matrix, rolling]) await part(both, report);
const note = `today's build and ${both.before.name}`;
process.exitCode = record(suite, { ...result, note }).failed === 0 ? 0 : 1;
