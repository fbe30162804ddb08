/**
 * Runs before `npm pack`. It builds everything, and puts the binaries into the folders that the package
 * contains. RDMA_RPC_PREBUILDS selects the binaries:
 *
 *   local    packs this machine's own build as it is. It is fast, needs nothing else, and loads where glibc
 *            is as new as here. `npm pack` uses it.
 *   all      packs the binaries for x64 and arm64, which are linked with an older Debian so that they load
 *            with glibc 2.28. `npm run test:portable` uses it. It fails where the compilers or mmdebstrap are
 *            missing, because a package must not lack half of its binaries unnoticed.
 *
 * It refuses `npm publish`, because a release consists of several packages, which scripts/release.mjs makes.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './command.mjs';
import { ARCHITECTURES, buildPrebuilt, copyLocal, PRODUCTS, prebuilt, whyNot } from './prebuilds.mjs';
import { neededVersions, tooMuch } from './symbols.mjs';

function fail(why) {
  console.error(`prepack: ${why}`);
  process.exit(1);
}

/**
 * Deletes the binaries of an earlier, fuller package, because the contents of a package must not depend on
 * those of an earlier package.
 */
function packLocal() {
  for (const arch of ARCHITECTURES) {
    rmSync(join(root, 'build', '.stamps', `portable-${arch}`), { force: true });
    if (arch !== process.arch) rmSync(join(root, prebuilt(arch)), { recursive: true, force: true });
  }
  copyLocal();
  const versions = neededVersions(join(root, prebuilt(process.arch), 'rdma_rpc.node'));
  const glibc = versions.get('GLIBC')?.at(-1) ?? '?';
  console.error(
    `! a package for this machine: its own build for linux-${process.arch}, which needs glibc ${glibc}. Elsewhere run \`npx rdma-rpc build-addon\` ` +
      'in it, or make the package for linux-x64 and linux-arm64: RDMA_RPC_PREBUILDS=all npm pack',
  );
}

async function packAll() {
  for (const arch of ARCHITECTURES) {
    const why = whyNot(arch);
    if (why !== '') fail(`no binary for linux-${arch}: ${why}. \`npm run test:portable\` installs them`);
  }
  for (const arch of ARCHITECTURES) await buildPrebuilt(arch);
  // Both architectures are checked, because another process may have packed this folder for this machine only
  // in the meantime.
  for (const arch of ARCHITECTURES) {
    for (const file of PRODUCTS.map((name) => join(root, prebuilt(arch), name))) {
      const much = existsSync(file) ? tooMuch(file) : ['to be built'];
      if (much.length > 0) fail(`${file} needs ${much.join('; ')}`);
    }
  }
}

// npm reads what prepack prints on stdout as its own output (pack --json), so all output goes to stderr.
console.log = console.error;
process.stdout.write = process.stderr.write.bind(process.stderr);
if (process.env.npm_command === 'publish')
  fail(
    'this folder is packed as one package for trying it out; a release has several packages, which ' +
      '`npm run release` makes and `npm run release -- --publish` publishes (CONTRIBUTING.md, "Releases")',
  );
const wanted = process.env.RDMA_RPC_PREBUILDS ?? 'local';
if (!['local', 'all'].includes(wanted)) fail(`RDMA_RPC_PREBUILDS is '${wanted}', not local or all`);
const setup = spawnSync(process.execPath, ['scripts/setup.mjs'], { cwd: root, stdio: ['ignore', 2, 2] });
if (setup.status !== 0) process.exit(1);
await (wanted === 'all' ? packAll() : packLocal());
