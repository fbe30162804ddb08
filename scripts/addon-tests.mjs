/**
 * Runs the tests that use the addon, with the addon built with sanitizers, like the sanitized native tests.
 * The sanitizers' libraries are loaded before Node.
 *
 *   node scripts/addon-tests.mjs --sanitize=address,undefined [--build]     --build: only build them
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { CommandFailed, root, run } from './command.mjs';
import { missing } from './debian.mjs';
import { buildDirectory, configureTests } from './native-tests.mjs';
import { record } from './results.mjs';
import { progress } from './step.mjs';
import { readVitest, reporting } from './vitest-report.mjs';

const FOLDERS = [
  'boundary',
  'client',
  'control',
  'core',
  'interop',
  'native',
  'runtime',
  'server',
  'states',
  'stream',
].map((name) => `test/${name}`);
/**
 * The parts that run. Tests that take long (vitest.config.ts) run in CI without sanitizers. The exception is
 * the decoding of memory that changes while it is decoded, because that test is about memory.
 */
const PARTS = {
  folders: ['--project', 'apart', '--project', 'together', ...FOLDERS],
  'rewritten memory': ['--project', 'long', 'test/runtime/rewritten.test.ts'],
};
const TEST_LIMIT_MS = 120_000;
/**
 * The number of messages that test/runtime/rewritten.test.ts decodes while another process rewrites them,
 * which takes a minute.
 */
const REWRITTEN = 100_000;
/**
 * The number of channel lifetimes in test/states. It is a tenth of the number without sanitizers, because
 * each case takes 20 ms with sanitizers.
 */
const SEEDS = 200;
/** With this number they take four minutes on an idle machine with two cores. */
const LIMIT_MS = 45 * 60_000;
const LIBRARIES = { address: 'libasan.so', undefined: 'libubsan.so', thread: 'libtsan.so' };

async function build(directory, sanitize) {
  await configureTests(sanitize);
  await run(['cmake', '--build', directory, '--parallel', '2', '--target', 'rdma_rpc']);
}

async function test(directory, sanitize, chosen) {
  const report = join(root, directory, 'vitest.json');
  rmSync(report, { force: true });
  const compiler = process.env.CXX ?? 'c++';
  const paths = sanitize
    .split(',')
    .map((name) => run([compiler, `-print-file-name=${LIBRARIES[name]}`]).then((path) => path.trim()));
  const preload = (await Promise.all(paths)).join(' ');
  const env = {
    RDMA_RPC_ADDON: join(root, directory, 'rdma_rpc.node'),
    ASAN_OPTIONS: 'detect_leaks=0', // Node does not free its memory at exit.
    RDMA_RPC_REWRITTEN: String(REWRITTEN),
    RDMA_RPC_SEEDS: String(SEEDS),
  };
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', ...chosen, `--testTimeout=${TEST_LIMIT_MS}`];
  try {
    await run(['env', `LD_PRELOAD=${preload}`, 'node', ...vitest, ...reporting(report)], {
      env,
      limitMs: LIMIT_MS,
    });
    return readVitest(report, '');
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    console.log(error.output);
    return readVitest(report, error.message);
  }
}

const sanitize = process.argv.find((arg) => arg.startsWith('--sanitize='))?.slice('--sanitize='.length) ?? '';
const suite = `addon, ${sanitize} sanitizer`;
const directory = buildDirectory(sanitize);
const lacking = [...missing('build'), ...missing('tests')];
if (process.argv.includes('--build')) {
  await build(directory, sanitize);
} else if (lacking.length > 0) {
  record(suite, { whyNot: [`missing Debian packages: ${lacking.join(', ')}`] });
} else {
  try {
    await progress(`${suite}: build`, () => build(directory, sanitize));
    for (const [part, chosen] of Object.entries(PARTS)) {
      const name = `${suite}, ${part}`;
      const result = await progress(`${name}: run`, () => test(directory, sanitize, chosen));
      if (record(name, result).failed > 0) process.exitCode = 1;
    }
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    record(suite, { failed: 1, note: error.message });
    process.exitCode = 1;
  }
}
