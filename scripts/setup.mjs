/**
 * Makes the project ready to run: npm packages, Debian packages, addon, TypeScript, generated code. Every
 * step is skipped when nothing that it reads has changed. It is plain JavaScript without dependencies,
 * because it runs before npm has installed any package.
 *
 *   node scripts/setup.mjs [--tests]     --tests: GoogleTest too, for the native tests
 */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { configure } from './cmake.mjs';
import { CommandFailed, root, run } from './command.mjs';
import * as debian from './debian.mjs';
import { locked } from './lock.mjs';
import { installNpmPackages } from './npm-packages.mjs';
import { step } from './step.mjs';

const NODE_MIN = [20, 17];
const ADDON = 'build/Release/rdma_rpc.node';
const PERF = 'build/Release/rdma_rpc_perf';
const PLUGIN = 'build/Release/rdma_rpc_verbs.so';
const VENDOR = 'dist/vendor/msgpackr.js';
const BUNDLE = 'dist/bundle/index.js';
const HEADERS = 'dist/vendor/include/napi.h';
const PREBUILT = `prebuilds/${process.platform}-${process.arch}/rdma_rpc.node`;
const tsc = ['node', 'node_modules/typescript/bin/tsc'];

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1])) return;
  throw new Error(`Node ${NODE_MIN.join('.')} or later is needed, this is ${process.versions.node}`);
}

async function buildAddon() {
  const lacking = await debian.install('build');
  if (lacking !== '') {
    if (![ADDON, PREBUILT].some((path) => existsSync(join(root, path)))) {
      throw new Error(`the addon cannot be built and nothing can run. ${lacking}`);
    }
    console.log(`! the addon is used as it is, not rebuilt: ${lacking}`);
    return false;
  }
  const noVerbs = await debian.install('verbs');
  if (noVerbs !== '') console.log(`! RDMA devices are left out (fabric verbs): ${noVerbs}`);
  return step({
    name: 'addon',
    title: 'native addon (CMake)',
    inputs: ['CMakeLists.txt', 'native', 'node_modules/node-addon-api/package.json'],
    ignore: ['native/test'],
    outputs: noVerbs === '' ? [ADDON, PERF, PLUGIN] : [ADDON, PERF],
    salt: noVerbs === '' ? 'with verbs' : '',
    action: async () => {
      if (noVerbs !== '') {
        // These are the plug-in of an earlier build, and CMake's record of the location of the headers.
        for (const path of [PLUGIN, 'build/native'])
          rmSync(join(root, path), { recursive: true, force: true });
      }
      // The native tests are also built there, with the same core library (native-tests.mjs).
      await configure('build/native', ['cmake', '-S', '.', '-B', 'build/native', '-DRDMA_RPC_ADDON=ON']);
      const targets = ['--target', 'rdma_rpc', 'rdma_rpc_perf'];
      await run(['cmake', '--build', 'build/native', '--parallel', '2', ...targets]);
    },
  });
}

const targets = JSON.parse(readFileSync(join(root, 'scripts/gen-targets.json'), 'utf8'));
const generated = targets.map((target) => target.out);

const compile = (name, title, config, inputs, output, ignore = []) =>
  step({
    name,
    title,
    inputs: [config, 'tsconfig.json', 'package-lock.json', ...inputs],
    ignore,
    outputs: [output],
    action: () =>
      run([...tsc, '-p', config, '--incremental', '--tsBuildInfoFile', `dist/.${name}.tsbuildinfo`]),
  });

function generate() {
  return step({
    name: 'generate',
    title: `generated code (${generated.join(', ')})`,
    inputs: [
      'scripts/gen-targets.json',
      'scripts/generate.mjs',
      'codegen',
      'proto',
      ...targets.flatMap(({ files, include }) => [...files, include]),
    ],
    ignore: generated,
    outputs: generated,
    action: () => run(['node', 'scripts/generate.mjs']),
  });
}

/** Copies third-party libraries that are not compiled into the package, with their licences. */
function vendor() {
  return step({
    name: 'vendor',
    title: 'libraries inside of the package',
    inputs: ['scripts/vendor.mjs', 'package-lock.json'],
    outputs: [VENDOR, HEADERS],
    action: () => run(['node', 'scripts/vendor.mjs']),
  });
}

/** Bundles the part of the compiled code that the package ships into a few files. */
function bundle() {
  return step({
    name: 'bundle',
    title: 'bundle of the package',
    inputs: ['scripts/bundle.mjs', 'package.json', 'tsconfig.json', 'runtime', 'codegen', 'cli'],
    outputs: [BUNDLE],
    action: () => run(['node', 'scripts/bundle.mjs']),
  });
}

/**
 * Removes compiled files whose source no longer exists, because they would still be imported, tested or
 * packed.
 */
function prune(dir = 'dist') {
  for (const entry of readdirSync(join(root, dir), { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) prune(path);
    const source = path.replace(/^dist\//, '').replace(/(\.d\.ts|\.js)(\.map)?$/, '.ts');
    if (/^(vendor|bundle)\//.test(source)) continue;
    if (source.endsWith('.ts') && !existsSync(join(root, source))) rmSync(join(root, path));
  }
}

async function setup(args) {
  checkNode();
  const did = [await installNpmPackages(), await vendor(), await buildAddon()];
  // The generator is compiled first, because tests and examples import its output.
  did.push(
    await compile(
      'generator',
      'TypeScript: generator',
      'tsconfig.codegen.json',
      ['codegen', 'runtime/codec'],
      'dist/codegen/index.js',
      // It does not import its own output.
      generated,
    ),
  );
  did.push(await generate());
  did.push(
    await compile(
      'all',
      'TypeScript: everything',
      'tsconfig.json',
      ['runtime', 'codegen', 'cli', 'examples', 'test', 'bench'],
      'dist/runtime/index.js',
    ),
  );
  did.push(await bundle());
  if (did.includes(true)) prune();
  if (args.includes('--tests')) {
    const lacking = await debian.install('tests');
    if (lacking !== '') console.log(`! native tests are left out: ${lacking}`);
    const noProtoc = await debian.install('protoc');
    if (noProtoc !== '') console.log(`! comparisons with protoc are left out: ${noProtoc}`);
    const noHosts = await debian.install('hosts');
    const noStrangers = await debian.install('strangers');
    if (noStrangers !== '')
      console.log(`! tests with strangers at unix sockets are left out: ${noStrangers}`);
    const noEtcd = process.env.CI === undefined ? '' : await debian.install('etcd');
    if (noEtcd !== '') console.log(`! tests with a real etcd are not run: ${noEtcd}`);
    const noTerminal = await debian.install('terminal');
    if (noTerminal !== '') console.log(`! tests of commands in a terminal are not run: ${noTerminal}`);
    if (noHosts !== '') console.log(`! tests between two hosts are left out: ${noHosts}`);
  }
  return did.includes(true);
}

const begin = performance.now();
try {
  const onWait = () =>
    console.log('setup: another set-up of this checkout is at work; this one waits for it');
  const worked = await locked(join(root, 'build', '.setup'), () => setup(process.argv.slice(2)), { onWait });
  const seconds = ((performance.now() - begin) / 1000).toFixed(1);
  console.log(`setup: ${worked ? 'done' : 'everything is up to date'} (${seconds} s)`);
} catch (error) {
  console.error(`setup: ${error instanceof CommandFailed ? 'the step above failed: ' : ''}${error.message}`);
  process.exit(1);
}
