/**
 * The native tests: CMake and GoogleTest, without Node.
 *
 *   node scripts/native-tests.mjs [--sanitize=address,undefined]
 */
import { configure } from './cmake.mjs';
import { CommandFailed, run } from './command.mjs';
import { missing } from './debian.mjs';
import { record } from './results.mjs';
import { progress } from './step.mjs';

const TEST_TIMEOUT_S = 120;

const withoutPassed = (output) =>
  output
    .split('\n')
    .filter((line) => !/^ *(Start +\d+:|\d+\/\d+ Test .* Passed )/.test(line))
    .join('\n');

/** Builds and runs them in a build directory of their own. Resolves to whether none failed. */
export async function nativeTests(sanitize = '') {
  const suite = sanitize === '' ? 'native' : `native, ${sanitize} sanitizer`;
  const lacking = [...missing('build'), ...missing('tests')];
  if (lacking.length > 0) {
    record(suite, { notRun: `missing Debian packages: ${lacking.join(', ')}` });
    return true;
  }
  const build = sanitize === '' ? 'build/native-tests' : `build/native-${sanitize.replaceAll(',', '-')}`;
  const type = sanitize === '' ? 'Release' : 'RelWithDebInfo';
  try {
    await progress(`${suite}: build`, async () => {
      const options = [
        '-DRDMA_RPC_TESTS=ON',
        `-DCMAKE_BUILD_TYPE=${type}`,
        `-DRDMA_RPC_SANITIZE=${sanitize}`,
      ];
      await configure(build, ['cmake', '-S', '.', '-B', build, ...options]);
      await run(['cmake', '--build', build, '--parallel', '2']);
    });
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    record(suite, { failed: 1, note: 'does not build' });
    return false;
  }
  const ctest = [
    'ctest',
    '--test-dir',
    build,
    '--output-on-failure',
    '--timeout',
    String(TEST_TIMEOUT_S),
    '-j',
    '2',
  ];
  const output = await progress(`${suite}: run`, () =>
    run([...ctest, '--no-tests=error']).catch((error) => {
      if (error instanceof CommandFailed) return error.output;
      throw error;
    }),
  );
  const [, failed, total] = /(\d+) tests failed out of (\d+)/.exec(output) ?? [undefined, '1', '1'];
  if (failed !== '0') console.log(withoutPassed(output));
  record(suite, { passed: Number(total) - Number(failed), failed: Number(failed) });
  return failed === '0';
}

if (process.argv[1] === import.meta.filename) {
  const sanitize = process.argv.find((arg) => arg.startsWith('--sanitize='))?.slice('--sanitize='.length);
  process.exit((await nativeTests(sanitize)) ? 0 : 1);
}
