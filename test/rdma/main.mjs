/**
 * Runs the suites that need RDMA devices: in a guest with soft-RoCE and in one with soft-iWARP
 * (test/rdma-vm), or on devices of this machine. The script builds the native suites first; setup has built
 * the rest.
 *
 *   node test/rdma/main.mjs [--link rxe|siw] [--kernel 6.1|6.12] [--only SUITE] [--filter TESTS]
 *                               [--sanitize address,undefined]
 *   node test/rdma/main.mjs --device mlx5_0[,mlx5_1] ...      no guest; with one name, both ends use that device
 *   node test/rdma/main.mjs --build                           only installs packages, and builds kernels and programs
 *
 * --kernel names the Linux of the guest. The default is that of this machine's Debian. The script prints "not
 * run" if Debian's archive does not have that Linux. --only selects suites whose name contains the text, such
 * as "session" or "node". --filter selects tests by their names, not by their files. For the suite "node" it
 * is a regular expression, as for vitest's -t; for all others it is a filter as for --gtest_filter, with *
 * and ?. If no test of any suite matches, the command fails. Each suite has a guest of its own, so that a
 * suite that breaks the kernel does not affect the other suites. A few failed tests get a second guest and a
 * line in the results (repeat.mjs).
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root, run } from '../../scripts/command.mjs';
import { install, missing } from '../../scripts/debian.mjs';
import { buildDirectory, buildVerbsTests } from '../../scripts/native-tests.mjs';
import { kernelPackage, kernels } from '../../scripts/rdma-kernels.mjs';
import { boot, whyNoGuest } from '../../scripts/rdma-vm.mjs';
import { merge, toRepeat } from '../../scripts/repeat.mjs';
import { NOT_RUN, reason, record, summarize } from '../../scripts/results.mjs';
import { progress } from '../../scripts/step.mjs';
import { whyNotDevices } from './devices.mjs';
import { bundle, nativeSuites, nodeSuites } from './suites.mjs';

const SUITE_LIMIT_S = 900;
const TRIAL_LIMIT_S = 120;
const GUEST_MIB = 3072;
const results = join('build', 'rdma-results');

/** Ends the script because nothing can be run. */
function refuse(why) {
  console.error(`rdma-tests: ${why}`);
  process.exit(2);
}

function optionsGiven() {
  const text = { type: 'string', default: '' };
  const some = { type: 'string' };
  try {
    const ofTests = { link: some, kernel: some, device: some, only: text, filter: text, sanitize: text };
    const options = { ...ofTests, build: { type: 'boolean', default: false } };
    return parseArgs({ options }).values;
  } catch (error) {
    return refuse(error.message.split('. ', 1)[0]);
  }
}

const options = optionsGiven();
for (const ofGuest of ['link', 'kernel'])
  if (options.device !== undefined && options[ofGuest] !== undefined)
    refuse(`--device and --${ofGuest}: either on devices of this machine, or in a guest`);
if (![undefined, ...kernels].includes(options.kernel))
  refuse(`--kernel is ${kernels.join(' or ')}, not '${options.kernel}'`);
if (![undefined, 'rxe', 'siw'].includes(options.link)) refuse(`--link is rxe or siw, not '${options.link}'`);
if (options.device !== undefined) {
  const why = whyNotDevices(options.device);
  if (why !== '') refuse(why);
}

/** Options of a command, without undefined ones. */
const given = (options) =>
  Object.entries(options).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, String(value)],
  );

/**
 * Returns the places where the suites run. Each has its name in the results, its two devices, and the way in
 * which a command is run there.
 */
function places() {
  if (options.device !== undefined) {
    return [{ name: options.device, devices: options.device, command: (suite) => suite }];
  }
  const links = options.link === undefined ? ['rxe', 'siw'] : [options.link];
  const { kernel } = options;
  return links.map((link) => {
    const guest = [...boot, ...given({ link, kernel: kernel && kernelPackage(kernel) })];
    const ofSuites = given({ share: join(root, results), mem: GUEST_MIB, timeout: SUITE_LIMIT_S });
    return {
      name: kernel === undefined ? link : `${link} ${kernel}`,
      link,
      devices: `${link}0,${link}1`,
      command: (suite) => [...guest, ...ofSuites, ...suite],
      trial: [...guest, ...given({ timeout: TRIAL_LIMIT_S }), 'uname', '-r'],
    };
  });
}

/**
 * Returns why the guest of `place` cannot be started, or "" when it can. A requested kernel is fetched, built
 * and started here once, so that an unavailable kernel is reported before anything is built, and only once.
 */
async function whyNotPlace(place) {
  if (place.link === undefined) return '';
  const why = await whyNoGuest(place.link);
  if (why !== '' || options.kernel === undefined) return why;
  try {
    const version = await progress(`rdma ${place.name}: the kernel`, () => run(place.trial));
    console.log(`rdma ${place.name}: Linux ${version.trim()}`);
    return '';
  } catch (error) {
    if (error.code !== NOT_RUN) throw error;
    return reason(error.output);
  }
}

/** Returns the exit code of a suite in words; boot.sh has its own exit codes. */
function meaning(code) {
  if (code === 124) return `not finished after ${SUITE_LIMIT_S} s`;
  return code === 125 ? 'the guest failed' : `ended with ${code}`;
}

/**
 * Runs a suite, or only some of its tests, and shows the output of the suite when something failed. Resolves
 * to the result.
 */
async function runOnce(place, suite, title, tests) {
  const part = tests === undefined ? '' : '-again';
  const report = join(results, `${place.name}-${suite.name}${part}.json`.replaceAll(/[ ,]/g, '-'));
  rmSync(join(root, report), { force: true });
  const env = { RDMA_RPC_VERBS_DEVICES: place.devices, RDMA_RPC_TEST_DEVICES: place.devices };
  const limitMs = (SUITE_LIMIT_S + 60) * 1000;
  let code = 0;
  const output = await progress(title, () =>
    run(place.command(suite.command(report, tests)), { env, limitMs }).catch((error) => {
      code = error.code;
      return error.output ?? '';
    }),
  );
  // Time limits are unreliable in a guest whose clock is wrong.
  for (const [line] of output.matchAll(/^rdma-vm: the guest(?:'s clock| was started again).*$/gm))
    console.log(`${title}: ${line}`);
  // The guest could not be started. However, a suite that reports this while devices are present has failed.
  if (code === NOT_RUN) {
    const noGuest = output.includes('rdma-vm: not run:');
    const seen = noGuest ? { failed: 0, whyNot: [reason(output)] } : { failed: 1, note: reason(output) };
    return { ...seen, passed: 0, failedTests: [], ended: false };
  }
  const { shown, ...result } = suite.read(report, output, code, meaning(code));
  if (shown !== '') console.log(shown);
  return result;
}

async function runSuite(place, suite) {
  const kind = options.sanitize === '' ? '' : `, ${options.sanitize} sanitizer`;
  const name = `rdma ${place.name}: ${suite.name}${kind}`;
  const first = await runOnce(place, suite, name);
  const again = place.link === undefined ? [] : toRepeat(first);
  if (again.length === 0) return record(name, first);
  const title = `${name}: what failed, once more in a fresh guest: ${again.map(({ key }) => key).join(', ')}`;
  return record(name, merge(first, await runOnce(place, suite, title, again)));
}

async function nativeOnes() {
  // No native program has this name, and other processes may be using the build directory.
  if (options.only === 'node') return [];
  const programs = await progress('rdma: build', () => buildVerbsTests(options.sanitize, options.only));
  const directory = buildDirectory(options.sanitize);
  return programs.flatMap((program) => nativeSuites(program, directory, options.filter));
}

async function nodeOnes({ name: place }) {
  const node = nodeSuites(place, options.filter).filter(({ name }) => name.includes(options.only));
  if (options.sanitize !== '' || node.length === 0) return [];
  await bundle(place);
  return node;
}

async function whyNone() {
  const lacking = [...missing('build'), ...missing('tests')];
  if (lacking.length > 0) return `missing Debian packages: ${lacking.join(', ')}`;
  const noSniffer = await install('sniffer');
  if (noSniffer !== '') console.log(`! tests that look at the wire are left out: ${noSniffer}`);
  return install('verbs');
}

async function rdmaTests() {
  const all = ['rdma', options.link, options.only].filter((part) => part).join(' ');
  const why = await whyNone();
  if (why !== '') return [record(all, { whyNot: [why] })];
  mkdirSync(join(root, results), { recursive: true });
  const recorded = [];
  let native;
  for (const place of places()) {
    let todo;
    try {
      const noGuest = await whyNotPlace(place);
      if (noGuest !== '') {
        recorded.push(record(`rdma ${place.name}`, { whyNot: [noGuest] }));
        continue;
      }
      native ??= await nativeOnes();
      todo = [...native, ...(await nodeOnes(place))];
    } catch (error) {
      return [...recorded, record(all, { failed: 1, note: error.message })];
    }
    if (todo.length === 0)
      return [...recorded, record(all, { failed: 1, note: `no suite has '${options.only}' in its name` })];
    for (const suite of todo) recorded.push(await runSuite(place, suite));
  }
  return recorded;
}

/**
 * Builds some parts in advance, because commands that run at the same time would otherwise all install and
 * build them.
 */
async function buildAhead() {
  if ((await whyNone()) !== '') return;
  for (const place of places()) {
    // The first guest builds the kernel for all guests.
    if (place.link !== undefined && (await whyNoGuest(place.link)) === '')
      await progress(`rdma ${place.name}: the kernel`, () => run(place.trial));
  }
  await nativeOnes();
}

if (options.build) {
  await buildAhead();
  process.exit(0);
}
const recorded = await rdmaTests();
summarize(recorded);
if (options.filter !== '' && recorded.every(({ passed, failed }) => passed + failed === 0))
  refuse(
    `no test was run: --filter is for names of tests, a regular expression for the suite "node" and a pattern of GoogleTest for the others; '${options.filter}' matches none, or what it matches cannot run here`,
  );
process.exit(recorded.every((result) => result.failed === 0) ? 0 : 1);
