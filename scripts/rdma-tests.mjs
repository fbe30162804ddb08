/**
 * The suites that need RDMA devices: in a guest with soft-RoCE and one with soft-iWARP (test/rdma-vm), or on devices of this
 * machine. Builds the native ones first; setup has built the rest.
 *
 *   node scripts/rdma-tests.mjs [--link rxe|siw] [--only SUITE] [--filter TESTS] [--sanitize address,undefined]
 *   node scripts/rdma-tests.mjs --device mlx5_0[,mlx5_1] ...      no guest; one name: both ends are on that device
 *
 * --only: suites whose name has it, such as "session" or "node". --filter: GoogleTest's filter, or vitest's pattern.
 * Each suite has a guest of its own, so that one that breaks the kernel leaves the others alone.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root, run } from './command.mjs';
import { install, missing } from './debian.mjs';
import { failuresOf, readGtest } from './gtest-report.mjs';
import { buildDirectory, buildVerbsTests } from './native-tests.mjs';
import { whyNotDevices } from './rdma-devices.mjs';
import { boot, whyNoGuest } from './rdma-vm.mjs';
import { NOT_RUN, reason, record, summarize } from './results.mjs';
import { progress } from './step.mjs';
import { readVitest } from './vitest-report.mjs';

const SUITE_LIMIT_S = 900;
const GUEST_MIB = 3072;
const results = join('build', 'rdma-results');

/** Ends the script: nothing has been run. */
function refuse(why) {
  console.error(`rdma-tests: ${why}`);
  process.exit(2);
}

function optionsGiven() {
  const text = { type: 'string', default: '' };
  const some = { type: 'string' };
  try {
    return parseArgs({ options: { link: some, device: some, only: text, filter: text, sanitize: text } })
      .values;
  } catch (error) {
    return refuse(error.message.split('. ', 1)[0]);
  }
}

const options = optionsGiven();
if (options.device !== undefined && options.link !== undefined)
  refuse('--device and --link: either on devices of this machine, or in a guest');
if (![undefined, 'rxe', 'siw'].includes(options.link)) refuse(`--link is rxe or siw, not '${options.link}'`);
if (options.device !== undefined) {
  const why = whyNotDevices(options.device);
  if (why !== '') refuse(why);
}

/** Where the suites run: its name in the results, its two devices, and how a command gets there. */
function places() {
  if (options.device !== undefined) {
    return [{ name: options.device, devices: options.device, command: (suite) => suite }];
  }
  const links = options.link === undefined ? ['rxe', 'siw'] : [options.link];
  return links.map((link) => ({
    name: link,
    link,
    devices: `${link}0,${link}1`,
    command: (suite) => {
      const guest = [...boot, '--link', link, '--share', join(root, results), '--mem', String(GUEST_MIB)];
      return [...guest, '--timeout', String(SUITE_LIMIT_S), ...suite];
    },
  }));
}

const nativeSuite = (program) => ({
  name: program,
  command: () => [
    join(root, buildDirectory(options.sanitize), program),
    ...(options.filter === '' ? [] : [`--gtest_filter=${options.filter}`]),
  ],
  read: (_, output, error) => {
    const report = readGtest(output);
    if (error !== '') console.log(failuresOf(output));
    const whyNot = [...report.notRun].map(([why, count]) => `${count} tests: ${why}`);
    const unseen = error !== '' && report.failed === 0;
    return { ...report, failed: unseen ? 1 : report.failed, whyNot, note: unseen ? error : report.note };
  },
});

const nodeSuite = {
  name: 'node',
  command: (report) => [
    process.execPath,
    ...['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/rdma/vitest.config.ts'],
    ...['--reporter=default', '--reporter=json', `--outputFile.json=${report}`],
    ...(options.filter === '' ? [] : ['-t', options.filter]),
  ],
  read: (report, output, error) => {
    const result = readVitest(join(root, report), error);
    if (error !== '' || result.whyNot?.length > 0) console.log(output);
    return result;
  },
};

/** What the exit code of a suite says; boot.sh has codes of its own. */
function meaning(code) {
  if (code === 124) return `not finished after ${SUITE_LIMIT_S} s`;
  return code === 125 ? 'the guest failed' : `ended with ${code}`;
}

async function runSuite(place, suite) {
  const kind = options.sanitize === '' ? '' : `, ${options.sanitize} sanitizer`;
  const name = `rdma ${place.name}: ${suite.name}${kind}`;
  const report = join(results, `${place.name}-${suite.name}.json`.replaceAll(',', '-'));
  rmSync(join(root, report), { force: true });
  const env = { RDMA_RPC_VERBS_DEVICES: place.devices, RDMA_RPC_TEST_DEVICES: place.devices };
  const limitMs = (SUITE_LIMIT_S + 60) * 1000;
  let failure;
  const output = await progress(name, () =>
    run(place.command(suite.command(report)), { env, limitMs }).catch((error) => {
      failure = error;
      return error.output ?? '';
    }),
  );
  // The guest itself cannot be had. A suite that says so, beside devices that are there, has failed.
  if (failure?.code === NOT_RUN) {
    const noGuest = output.includes('rdma-vm: not run:');
    return record(name, noGuest ? { whyNot: [reason(output)] } : { failed: 1, note: reason(output) });
  }
  return record(name, suite.read(report, output, failure === undefined ? '' : meaning(failure.code)));
}

async function suites() {
  const programs = await progress('rdma: build', () => buildVerbsTests(options.sanitize, options.only));
  const node = options.sanitize === '' && nodeSuite.name.includes(options.only);
  return [...programs.map(nativeSuite), ...(node ? [nodeSuite] : [])];
}

async function whyNone() {
  const lacking = [...missing('build'), ...missing('tests')];
  if (lacking.length > 0) return `missing Debian packages: ${lacking.join(', ')}`;
  return install('verbs');
}

async function rdmaTests() {
  const why = await whyNone();
  if (why !== '') return [record('rdma', { whyNot: [why] })];
  mkdirSync(join(root, results), { recursive: true });
  const recorded = [];
  let todo;
  for (const place of places()) {
    const noGuest = place.link === undefined ? '' : await whyNoGuest(place.link);
    if (noGuest !== '') {
      recorded.push(record(`rdma ${place.name}`, { whyNot: [noGuest] }));
      continue;
    }
    try {
      todo ??= await suites();
    } catch (error) {
      return [...recorded, record('rdma', { failed: 1, note: error.message })];
    }
    if (todo.length === 0)
      return [...recorded, record('rdma', { failed: 1, note: `no suite has '${options.only}' in its name` })];
    for (const suite of todo) recorded.push(await runSuite(place, suite));
  }
  return recorded;
}

const recorded = await rdmaTests();
summarize(recorded);
process.exit(recorded.every((result) => result.failed === 0) ? 0 : 1);
