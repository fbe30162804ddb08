/**
 * Tests the package on musl: Bun's build for musl, in a root with Debian's musl. The package has no native
 * code for musl, so this script tests the parts that work without it. This script is a part of main.mjs.
 *
 * Bun needs a libstdc++. Debian's build is made for glibc, and lacks seven functions on musl, which
 * musl-shim.c has.
 */
import { copyFileSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from '../../scripts/command.mjs';

const BUN = '@oven/bun-linux-x64-musl@1.4.4';
const LIMIT_MS = 120_000;
/** The libraries come from the glibc of this machine. */
const LIBRARIES = ['/usr/lib/x86_64-linux-gnu/libstdc++.so.6', '/usr/lib/x86_64-linux-gnu/libgcc_s.so.1'];
/** The libraries that these libraries need in turn, by name. */
const GLIBC = ['libc.so.6', 'libm.so.6', 'ld-linux-x86-64.so.2', 'libc.musl-x86_64.so.1'];

const PROGRAM = `import { createClient, createInProcessChannel, createServer } from 'rdma-rpc';
  import { defineService, method } from 'rdma-rpc/msgpack';
  const Sum = defineService({ name: 'test.Sum', methods: { add: method() } });
  const add = ({ terms, bytes }) => ({ sum: terms[0] + terms[1], bytes });
  const channel = createInProcessChannel((server) => server.add(Sum, { add }));
  const { sum, bytes } = await createClient(Sum, channel).add({ terms: [1, 2], bytes: new Uint8Array(500_000) });
  console.log(sum, bytes.length, channel.fabric);
  await channel.close();
  await createServer().listen('127.0.0.1:0').catch(({ message }) => console.log(message));`;

/**
 * Makes a root under `work` with musl, Bun, and the application in /app. Returns how a program is run there.
 */
async function muslRoot(work, app) {
  const folder = join(work, 'musl');
  const bin = join(folder, 'usr/bin');
  mkdirSync(join(work, 'musl-packages'));
  const cwd = join(work, 'musl-packages');
  await run(['apt-get', 'download', 'musl'], { cwd });
  await run(['npm', 'pack', '--silent', BUN], { cwd, limitMs: LIMIT_MS });
  await run(['sh', '-c', 'dpkg-deb -x musl_*.deb ../musl && tar -xzf oven-bun-*.tgz'], { cwd });
  for (const place of ['usr/lib', 'tmp']) mkdirSync(join(folder, place), { recursive: true });
  writeFileSync(join(folder, 'etc/ld-musl-x86_64.path'), '/lib\n/usr/lib\n/lib/x86_64-linux-musl\n');
  for (const name of GLIBC) symlinkSync('/lib/x86_64-linux-musl/libc.so', join(folder, 'usr/lib', name));
  for (const path of LIBRARIES) copyFileSync(path, join(folder, 'usr/lib', path.split('/').at(-1)));
  copyFileSync(join(cwd, 'package/bin/bun'), join(bin, 'bun'));
  const shim = join(root, 'test/portable/musl-shim.c');
  await run(['gcc', '-O1', '-fPIC', '-shared', '-nostdlib', '-o', join(folder, 'lib/libshim.so'), shim]);
  cpSync(app, join(folder, 'app'), { recursive: true });
  // The loader outside of the root reports that it has no such library.
  const inside = [
    'env',
    '-i',
    'PATH=/usr/bin',
    'HOME=/tmp',
    'LD_PRELOAD=/lib/libshim.so',
    '/usr/sbin/chroot',
    folder,
  ];
  return (...command) => run([...inside, '/usr/bin/bun', ...command], { limitMs: LIMIT_MS });
}

/** Returns the checks that main.mjs runs. `app` is the application with the package in node_modules. */
export function muslChecks(work, app) {
  let bun;
  return [
    ['a root with musl and Bun', async () => (bun = await muslRoot(work, app))],
    [
      'channels within the process work, and the rest says why not',
      async () => {
        writeFileSync(join(work, 'musl/app/musl.mjs'), PROGRAM);
        const said = await bun('/app/musl.mjs');
        if (!/^3 500000 loopback$/m.test(said)) throw new Error(said);
        if (!/this Node runs on musl \(Alpine Linux\)/.test(said)) throw new Error(said);
      },
    ],
    [
      'the generator works',
      async () => {
        copyFileSync(join(root, 'examples/hello/greeter.proto'), join(work, 'musl/app/greeter.proto'));
        const cli = '/app/node_modules/rdma-rpc/dist/bundle/cli.js';
        const said = await bun(cli, 'gen', '/app/greeter.proto', '-o', '/app/gen');
        if (!said.includes('1 file generated')) throw new Error(said);
      },
    ],
  ];
}
