/**
 * Sets up a machine that has never seen this project: Debian's minimum, git, Node and npm, in a separate root
 * folder. The script clones HEAD into this machine ("the bare machine") and runs commands there. A program
 * that happens to be installed on the host therefore cannot hide that set-up lacks a step. The script needs
 * root, mounts and mmdebstrap. When one of these is missing, it prints "not run" with the reason and ends
 * with 77.
 *
 *   node scripts/bare-machine.mjs [--user] [--packages] [--take] [--node MAJOR] [COMMAND ...]
 *
 * Without COMMAND, the script runs the commands of the README, and then the tests that read the tree without
 * git, as from a tarball. It also records the results that the commands leave in build/results.
 *
 * - `--user` runs the commands as a user who is not root and has no sudo.
 * - `--packages` first installs the Debian packages that set-up would install.
 * - `--take` moves built files from the bare machine into this checkout, except files that this checkout
 *   already has.
 * - `--node MAJOR` uses the Node of this major version instead of the host's.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { root as project, run } from './command.mjs';
import { FOR_TESTS, install, packagesOf } from './debian.mjs';
import { installTools, nodeFolder } from './quickstart-tools.mjs';
import { NOT_RUN, record } from './results.mjs';
import { progress } from './step.mjs';

const INCLUDED = ['ca-certificates', 'git'];
const USER = 'newcomer';
const CACHE = join(project, 'build', 'bare-machine');
const COMMAND_LIMIT_MS = 30 * 60_000;
/**
 * The roots are on disk, also where temporary files are kept in memory, because a root with its build takes 3
 * GB.
 */
const ROOTS = '/var/tmp';
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/**
 * Access to the registries belongs to this machine, not to the project. The caller chooses the extent of the
 * tests (test/extent.ts).
 */
const PASSED_ON = [
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'RDMA_RPC_EXTENT',
];
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
/** The mounts belong to a separate namespace, so that they, and all processes, end with the command. */
const NAMESPACE = ['unshare', '--mount', '--pid', '--fork', '--kill-child'];
const ENTER = `cd "$0" && mount -t proc proc proc && mount --rbind /sys sys && mount --rbind /dev dev && exec chroot "$@"`;

const WITHOUT_GIT = 'rm -rf .git "$(command -v git)" && npx --no-install vitest run test/house test/docs';

class NotHere extends Error {}

/** Returns the commands that the README gives a newcomer for a clone. */
function commandsOfReadme() {
  const [, block] = /^## Try it\n[\s\S]*?^```sh\n([\s\S]*?)^```$/m.exec(
    readFileSync(join(project, 'README.md'), 'utf8'),
  );
  return block
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((line) => line !== '');
}

/** Throws NotHere with the reason why this machine cannot contain another machine. */
async function check() {
  if (process.platform !== 'linux') throw new NotHere('it needs Linux');
  if (process.getuid() !== 0) throw new NotHere('it needs root');
  if (!existsSync(join(project, '.git'))) throw new NotHere('it clones HEAD, and this is no git checkout');
  const lacking = await install('bare');
  if (lacking !== '') throw new NotHere(lacking);
  const probe = mkdtempSync(join(ROOTS, 'bare-machine-probe-'));
  // Debian's files have several owners, and the root user of a namespace may not be allowed to set them.
  const { status: chown } = spawnSync('chown', ['1:1', probe], { stdio: 'ignore' });
  for (const folder of ['proc', 'sys', 'dev']) mkdirSync(join(probe, folder));
  const enter = ENTER.replace('exec chroot "$@"', 'true');
  const { status, stderr, error } = spawnSync(
    NAMESPACE[0],
    [...NAMESPACE.slice(1), 'sh', '-c', enter, probe],
    {
      encoding: 'utf8',
    },
  );
  rmSync(probe, { recursive: true });
  if (chown !== 0) throw new NotHere('it needs a root who may give files to other users');
  if (status !== 0)
    throw new NotHere(`it needs mounts: ${(error?.message ?? stderr).trim().split('\n').at(-1)}`);
}

/**
 * Returns Debian's minimum as a tarball. The tarball is created once for each release and set of packages.
 */
async function debianTarball() {
  const release = Object.fromEntries(
    [...readFileSync('/etc/os-release', 'utf8').matchAll(/^(\w+)="?(.*?)"?$/gm)].map((line) => line.slice(1)),
  );
  const ours = release.ID === 'debian';
  const suite = ours ? release.VERSION_CODENAME : 'bookworm';
  const tarball = join(CACHE, `${suite}-${process.arch}-${INCLUDED.join('-')}.tar`);
  if (existsSync(tarball)) return tarball;
  mkdirSync(CACHE, { recursive: true });
  // Uses this machine's apt settings for downloads (proxies, and whether apt checks dates). If this machine
  // runs Debian, its package source is used, too.
  const options = join(CACHE, 'apt.conf');
  const dump = await run(['apt-config', 'dump', 'Acquire']);
  writeFileSync(options, (dump.match(/^Acquire::(?!IndexTargets|cdrom).* ".+";$/gm) ?? []).join('\n'));
  const places = ['/etc/apt/sources.list', '/etc/apt/sources.list.d/debian.sources'];
  const mirrors = places.filter(
    (path) => ours && existsSync(path) && /^(deb|Types)/m.test(readFileSync(path, 'utf8')),
  );
  const unfinished = `${tarball}.unfinished`;
  const flags = [
    '--quiet',
    '--variant=minbase',
    '--format=tar',
    `--include=${INCLUDED.join(',')}`,
    `--aptopt=${options}`,
  ];
  try {
    await progress(`bare machine: Debian ${suite}, its minimum`, () =>
      run(['mmdebstrap', ...flags, suite, unfinished, ...mirrors]),
    );
  } catch (error) {
    throw new NotHere(`Debian's minimum cannot be made: ${error.message}`);
  }
  renameSync(unfinished, tarball);
  return tarball;
}

/**
 * Copies Node, npm and Node's headers, as they are installed here. With `major` it takes the program of that
 * version (quickstart-tools.mjs).
 */
async function layNode(root, major) {
  const prefix = dirname(dirname(process.execPath));
  const put = (from, to) => cpSync(from, join(root, 'usr', to), { recursive: true, verbatimSymlinks: true });
  const why = major === undefined ? '' : await installTools('bare machine');
  if (why !== '') throw new NotHere(why);
  put(major === undefined ? process.execPath : join(nodeFolder(major), 'node'), 'bin/node');
  put(join(prefix, 'lib/node_modules/npm'), 'lib/node_modules/npm');
  const headers = join(prefix, 'include/node');
  if (existsSync(headers)) put(headers, 'include/node');
  for (const name of ['npm', 'npx'])
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(root, 'usr/bin', name));
}

/** Copies the settings that this machine needs to reach the registries. */
async function layNetwork(root, home) {
  for (const path of ['/etc/resolv.conf', '/etc/hosts', CERTIFICATES])
    if (existsSync(path)) cpSync(path, join(root, path), { dereference: true });
  for (const [which, to] of [
    ['userconfig', join(home, '.npmrc')],
    ['globalconfig', '/usr/etc/npmrc'],
  ]) {
    const path = (await run(['npm', 'config', 'get', which])).trim().split('\n').at(-1);
    if (existsSync(path)) cpSync(path, join(root, to));
  }
}

/**
 * Runs `command` in the machine, and shows its output. Resolves to its exit code, or to another reason why it
 * ended.
 */
function inside(root, { user, home, folder }, command) {
  const passed = PASSED_ON.filter((name) => process.env[name] !== undefined).map(
    (name) => `${name}=${process.env[name]}`,
  );
  const env = [
    `HOME=${home}`,
    `PATH=${PATH}`,
    'CI=true',
    'TERM=dumb',
    'LANG=C.UTF-8',
    `NODE_EXTRA_CA_CERTS=${CERTIFICATES}`,
  ];
  const shell = ['env', '-i', ...env, ...passed, 'bash', '-c', `cd ${folder} && ${command}`];
  const chroot = [`--userspec=${user}:${user}`, root, ...shell];
  const child = spawn(NAMESPACE[0], [...NAMESPACE.slice(1), 'sh', '-c', ENTER, root, ...chroot], {
    stdio: ['ignore', 'inherit', 'inherit'],
    timeout: COMMAND_LIMIT_MS,
  });
  const stop = () => child.kill('SIGTERM');
  process.on('SIGTERM', stop).on('SIGINT', stop);
  return new Promise((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => {
      process.off('SIGTERM', stop).off('SIGINT', stop);
      resolve(code ?? signal);
    });
  });
}

/** Returns the result of `command`: the suites that it has recorded, or the command itself as one check. */
function recordOf(root, { folder }, command, ended) {
  const results = join(root, folder, 'build', 'results');
  const files = existsSync(results) ? readdirSync(results) : [];
  const suites = files.map((file) => JSON.parse(readFileSync(join(results, file), 'utf8')));
  rmSync(results, { recursive: true, force: true });
  const recorded = suites.map(({ suite, ...result }) => record(`bare machine: ${suite}`, result));
  const explained = recorded.some(({ failed }) => failed > 0);
  if (recorded.length === 0 || (ended !== 0 && !explained)) {
    const outcome = ended === 0 ? { passed: 1 } : { failed: 1, note: `ended with ${ended}` };
    // The name becomes the name of a file.
    recorded.push(record(`bare machine: ${command.slice(0, 150)}`, outcome));
  }
  return recorded;
}

/** Returns the files that set-up and `npm test` create in a checkout. */
function made() {
  const targets = JSON.parse(readFileSync(join(project, 'scripts/gen-targets.json'), 'utf8'));
  const build = ['.stamps', 'Release', 'native'].map((name) => join('build', name));
  return ['node_modules', 'dist', ...build, ...new Set(targets.map(({ out }) => out))];
}

/**
 * Moves the results of the builds in the machine into this checkout, so that CI does not compile the same
 * commit twice. The files are valid here, because the machine has the checkout at the same path. The stamps
 * of its steps record the inputs of the build.
 */
async function take(checkout) {
  for (const path of made()) {
    const from = join(checkout, path);
    const to = join(project, path);
    if (!existsSync(from) || existsSync(to)) continue;
    mkdirSync(dirname(to), { recursive: true });
    await run(['mv', from, to]);
  }
}

async function main() {
  const flag = { type: 'boolean' };
  const { values, positionals } = parseArgs({
    options: { user: flag, packages: flag, take: flag, node: { type: 'string' } },
    allowPositionals: true,
  });
  const commands = positionals.length > 0 ? positionals : [...commandsOfReadme(), WITHOUT_GIT];
  await check();
  const tarball = await debianTarball();
  const root = mkdtempSync(join(ROOTS, 'bare-machine-'));
  const asRoot = { user: 'root', home: '/root', folder: '/root' };
  const home = values.user ? `/home/${USER}` : '/root';
  // Root has the checkout at the same path as here, so that CMake's build directories remain valid when
  // --take moves them here.
  const folder = values.user ? `${home}/project` : project;
  const who = { user: values.user ? USER : 'root', home, folder };
  process.on('exit', () => rmSync(root, { recursive: true, force: true }));
  await run(['tar', '-xf', tarball, '-C', root]);
  await run(['chmod', '755', root]);
  await layNode(root, values.node);
  const runs = await inside(root, asRoot, 'npm --version >/dev/null');
  if (runs !== 0)
    throw new NotHere(`npm of this machine does not run on Debian's minimum (it ended with ${runs})`);
  if (values.user) await inside(root, asRoot, `useradd --create-home --shell /bin/bash ${USER}`);
  await layNetwork(root, home);
  await run(['git', 'clone', '--quiet', '--no-local', project, join(root, who.folder)]);
  if (values.user) await inside(root, asRoot, `chown -R ${USER}:${USER} ${home}`);
  if (values.packages) {
    const packages = packagesOf(FOR_TESTS).join(' ');
    const ended = await inside(
      root,
      asRoot,
      `apt-get update -q && apt-get install -q -y --no-install-recommends ${packages}`,
    );
    if (ended !== 0) throw new Error(`its packages could not be installed: ${ended}`);
  }
  const recorded = [];
  for (const command of commands) {
    console.log(`\n== bare machine${values.user ? `, as ${USER}` : ''}: ${command}`);
    recorded.push(...recordOf(root, who, command, await inside(root, who, command)));
  }
  if (values.take) await take(join(root, folder));
  return recorded.every(({ failed }) => failed === 0) ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  const outcome = error instanceof NotHere ? { whyNot: [error.message] } : { failed: 1, note: error.message };
  record('bare machine', outcome);
  process.exitCode = error instanceof NotHere ? NOT_RUN : 1;
}
