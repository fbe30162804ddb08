/**
 * Runs the native tests, which use CMake and GoogleTest, without Node.
 *
 *   node scripts/native-tests.mjs [--sanitize=address,undefined] [--build]     --build: only build them
 */
import { configure } from './cmake.mjs';
import { CommandFailed, run } from './command.mjs';
import { missing } from './debian.mjs';
import { record } from './results.mjs';
import { progress } from './step.mjs';
import { runPrograms } from './whole-programs.mjs';

/**
 * The number of attacks on sealed frames with each cipher. Four in five attacks change a frame. Sanitizers
 * and emulators are too slow for this number, and `npm test` should not take so long (test/extent.ts).
 */
const MANY_TRIES = process.env.RDMA_RPC_EXTENT === 'all' ? { env: { RDMA_RPC_SEAL_TRIES: '1250000' } } : {};
/**
 * Tests a third of the sessions' lives. With sanitizers, each of the three runs would take minutes if it
 * tested all of them.
 */
const FEWER_SEEDS = { env: { RDMA_RPC_SEEDS: '500' } };

export const buildDirectory = (sanitize) =>
  sanitize === '' ? 'build/native' : `build/native-${sanitize.replaceAll(',', '-')}`;

/**
 * Configures the build directory of the native tests. The directory also contains the addon (setup.mjs,
 * addon-tests.mjs). Both use one core library, which is compiled once.
 */
export async function configureTests(sanitize) {
  const directory = buildDirectory(sanitize);
  const options = [
    '-DRDMA_RPC_TESTS=ON',
    '-DRDMA_RPC_ADDON=ON',
    '-DCMAKE_BUILD_TYPE=Release',
    `-DRDMA_RPC_SANITIZE=${sanitize}`,
  ];
  await configure(directory, ['cmake', '-S', '.', '-B', directory, ...options]);
}

async function build(directory, sanitize) {
  await configureTests(sanitize);
  await run(['cmake', '--build', directory, '--parallel', '2']);
}

/** Builds only the programs that need RDMA devices and have `only` in their name. Resolves to their names. */
export async function buildVerbsTests(sanitize, only = '') {
  const directory = buildDirectory(sanitize);
  await configureTests(sanitize);
  const targets = await run(['cmake', '--build', directory, '--target', 'help']);
  // The form in which make or ninja lists a target.
  const target = /^(?:\.{3} )?(verbs_(?:\w+_)?test)(?:: \w+)?$/gm;
  const all = [...new Set([...targets.matchAll(target)].map((match) => match[1]))].sort();
  const programs = all.filter((name) => name.includes(only));
  if (programs.length === 0) return [];
  await run(['cmake', '--build', directory, '--parallel', '2', '--target', ...programs]);
  return programs;
}

/** Builds the tests and runs them in a separate build directory. Resolves to their results. */
export async function nativeTests(sanitize = '') {
  const suite = sanitize === '' ? 'native' : `native, ${sanitize} sanitizer`;
  const lacking = [...missing('build'), ...missing('tests')];
  if (lacking.length > 0) {
    return record(suite, { whyNot: [`missing Debian packages: ${lacking.join(', ')}`] });
  }
  const directory = buildDirectory(sanitize);
  try {
    await progress(`${suite}: build`, () => build(directory, sanitize));
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return record(suite, { failed: 1, note: 'does not build' });
  }
  const { notRun, ...counts } = await progress(`${suite}: run`, () =>
    runPrograms(directory, sanitize === '' ? MANY_TRIES : FEWER_SEEDS),
  );
  const whyNot = [...notRun].map(([reason, count]) => `${count} tests: ${reason}`);
  return record(suite, { ...counts, whyNot });
}

if (process.argv[1] === import.meta.filename) {
  const sanitize =
    process.argv.find((arg) => arg.startsWith('--sanitize='))?.slice('--sanitize='.length) ?? '';
  if (process.argv.includes('--build')) await build(buildDirectory(sanitize), sanitize);
  else process.exit((await nativeTests(sanitize)).failed === 0 ? 0 : 1);
}
