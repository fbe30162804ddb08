/**
 * Tests other JS runtimes and other bundlers than those of `npm test`. Bun and Deno run the examples and the
 * hard endings of the addon's tests, and rollup and webpack bundle an application. `npm run test:runtimes`
 * runs this script. The script installs the packages that it needs into build/runtimes, and prints "not run"
 * for parts that are not available.
 */
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { globSync } from 'tinyglobby';
import { root, run } from '../../scripts/command.mjs';
import { record } from '../../scripts/results.mjs';
import { bundlers, extension } from './bundlers.mjs';
import { installIn, stage } from './stage.mjs';

const LIMIT_MS = 60_000;
const suite = 'other JS runtimes and bundlers';
const cache = join(root, 'build/runtimes');
const dist = (path) => join(root, 'dist', path);
const work = mkdtempSync(join(tmpdir(), 'rdma-rpc-runtimes-'));
const result = { passed: 0, failed: 0, whyNot: [], failures: [] };

/** Returns '' on success, or why the packages are not available. */
function install() {
  mkdirSync(cache, { recursive: true });
  copyFileSync(join(root, 'test/runtimes/package.json'), join(cache, 'package.json'));
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--prefer-offline'];
  const options = { cwd: cache, encoding: 'utf8', timeout: 300_000 };
  const { status, stderr } = spawnSync('npm', ['install', ...flags], options);
  if (status === 0) return '';
  return `npm could not install its packages: ${stderr.split('\n').find((line) => /error/.test(line)) ?? 'no reason given'}`;
}

/** Returns the JS runtimes of the cache that start here. The others are recorded as not run. */
function runtimes() {
  const found = { node: [process.execPath, '--expose-gc'] };
  const places = { bun: '@oven/bun-linux-*/bin/bun', deno: '@deno/linux-*/deno' };
  for (const [name, pattern] of Object.entries(places)) {
    const paths = globSync(pattern, { cwd: join(cache, 'node_modules'), absolute: true });
    const path = paths.find((one) => spawnSync(one, ['--version']).status === 0);
    if (path === undefined) result.whyNot.push(`${name}: its package has no binary that starts here`);
    else found[name] = name === 'deno' ? [path, 'run', '-A', '--v8-flags=--expose-gc'] : [path];
  }
  return found;
}

async function check(name, action) {
  try {
    await action();
    ++result.passed;
    console.log(`✓ ${name}`);
  } catch (error) {
    ++result.failed;
    result.failures.push(`${name}: ${error.message.split('\n')[0]}`);
    console.log(`✗ ${name}: ${error.message}\n${error.output ?? ''}`);
  }
}

function expect(output, text) {
  if (!output.includes(text))
    throw new Error(`expected ${JSON.stringify(text)}, not ${JSON.stringify(output)}`);
}

/**
 * Runs hello, with the server under one runtime and the client under another. `fabric` is the only fabric
 * that they use.
 */
async function hello(server, client, address, fabric) {
  const env = fabric === undefined ? {} : { RDMA_RPC_FABRIC: fabric };
  const [program, ...args] = [...server, dist('examples/hello/server.js'), address];
  const stdio = ['ignore', 'pipe', 'inherit'];
  const child = spawn(program, args, {
    cwd: root,
    stdio,
    timeout: LIMIT_MS,
    env: { ...process.env, ...env },
  });
  let bound = '';
  try {
    for await (const line of createInterface(child.stdout)) {
      expect(line, `listening on ${address.replace(/:0$/, ':')}`);
      bound = line.slice('listening on '.length);
      break;
    }
    const answer = await run([...client, dist('examples/hello/client.js'), bound], {
      env,
      limitMs: LIMIT_MS,
    });
    expect(answer, 'Hello, Ada!');
  } finally {
    child.kill('SIGKILL');
  }
}

/** Programs that the addon's tests run as a process of Node, by the text with which they end. */
const programs = {
  'callback-throws': 'caught: thrown in the events callback',
  'exit-with-calls-in-flight': '',
  'exit-with-calls-in-flight-shm': '',
  'end-without-close': '',
  'close-in-callback': 'closed in the callback',
  'calls-now-and-then': 'slept and woke',
  'threads-terminated': 'terminated',
  'leases-collected': 'collected',
};
/** Cells of the table of ends (test/ends) that need no server in another process. */
const openThings = ['a server with a session', 'an in-process channel'];
/** The exit code for each way to end, and the events of a worker's end on the main thread. */
const ends = {
  'by itself': [0, ''],
  'process.exit': [7, ''],
  'worker: by itself': [0, '{"code":0,"error":""}\n'],
  'worker: process.exit': [0, '{"code":7,"error":""}\n'],
};

/** Ends a process in one way with one thing open. */
function endWith(command, thing, end) {
  const [code, output] = ends[end];
  const [program, ...args] = [...command, dist('test/ends/cell.js'), thing, end];
  const { status, signal, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    timeout: LIMIT_MS,
  });
  if (status !== code || stdout !== output)
    throw new Error(`it ended with ${signal ?? status} and ${JSON.stringify(stdout)}: ${stderr}`);
}

const answers = 'Hello, Ada!\nHello from a worker, Grace!\n';

async function tryRuntimes(found, app) {
  const { node, ...others } = found;
  for (const [name, command] of Object.entries(others)) {
    const socket = (what) => `unix:${join(work, `${name}-${what}.sock`)}`;
    await check(`hello: ${name} and ${name}`, () => hello(command, command, socket('both')));
    await check(`hello: server ${name}, client Node`, () => hello(command, node, socket('server')));
    await check(`hello: server Node, client ${name}`, () => hello(node, command, socket('client')));
    await check(`hello over tcp: server Node, client ${name}`, () =>
      hello(node, command, '127.0.0.1:0', 'tcp'),
    );
    await check(`kv: ${name}`, async () => {
      const output = await run([...command, dist('examples/kv/demo.js'), '0.01'], { limitMs: LIMIT_MS });
      expect(output, 'every value was the right one');
    });
    await check(`a thread and a worker: ${name}`, async () => {
      expect(await run([...command, ...app], { limitMs: LIMIT_MS }), answers);
    });
    for (const thing of openThings) {
      for (const end of Object.keys(ends))
        await check(`${end} with ${thing}: ${name}`, async () => endWith(command, thing, end));
    }
    for (const [program, text] of Object.entries(programs)) {
      await check(`${program}: ${name}`, async () => {
        const output = await run([...command, dist('test/native/programs.js'), program], {
          limitMs: LIMIT_MS,
        });
        expect(output, text);
      });
    }
  }
}

async function tryBundlers(app) {
  for (const [name, bundle] of Object.entries(await bundlers(cache, app))) {
    for (const format of ['esm', 'cjs']) {
      for (const external of [false, true]) {
        await check(
          `${name}, ${format}, the package ${external ? 'left out' : 'in the bundle'}`,
          async () => {
            const folder = join(work, name, format, external ? 'external' : 'in-one');
            await bundle(folder, format, external);
            if (external) {
              installIn(folder);
            } else {
              copyFileSync(join(root, 'build/Release/rdma_rpc.node'), join(folder, 'rdma_rpc.node'));
            }
            const files = ['main', 'worker'].map((file) => join(folder, `${file}.${extension(format)}`));
            expect(await run(['node', ...files], { limitMs: LIMIT_MS }), answers);
          },
        );
      }
    }
  }
}

const why = install();
if (why !== '') {
  result.whyNot.push(why);
} else if (!existsSync(dist('examples/hello/server.js'))) {
  result.failures.push('dist is missing: run npm run setup');
  ++result.failed;
} else {
  const app = stage(join(work, 'app'));
  await tryRuntimes(runtimes(), app);
  await tryBundlers(app);
}
rmSync(work, { recursive: true, force: true });
process.exitCode = record(suite, result).failed === 0 ? 0 : 1;
