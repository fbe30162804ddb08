/**
 * Makes a release: lays out the packages under build/release, checks them, writes their contents (SBOM),
 * packs each into a file, and publishes them if it is asked to.
 *
 *   node scripts/release.mjs               for all platforms; `npm publish --dry-run` of each package
 *   node scripts/release.mjs --local       with this machine's own build alone, for trying it out: the same
 *                                          trial, and publishes nothing
 *   node scripts/release.mjs --publish     publishes, with npm's provenance in CI: refuses unless all checks hold
 *
 * Packages are published only after all of them have been checked. The platforms' packages are published
 * first, so that a user never gets a package whose binary is missing. After a failure in the middle, the
 * command can be repeated.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { CommandFailed, root, run } from './command.mjs';
import { buildPrebuilt, copyLocal, installCompilers } from './prebuilds.mjs';
import { binaryChecks, packageChecks, repositoryChecks } from './release/checks.mjs';
import { assemble, PLATFORMS } from './release/packages.mjs';
import { publish } from './release/publish.mjs';
import { writeSbom } from './release/sbom.mjs';
import { progress } from './step.mjs';

const { values: flags } = parseArgs({
  options: {
    local: { type: 'boolean', default: false },
    publish: { type: 'boolean', default: false },
    out: { type: 'string', default: 'build/release' },
  },
});
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const out = resolve(root, flags.out);

/**
 * Returns the errors of each check. `subjects` are the things that each check examines, with a name for the
 * report.
 */
function findings(checks, subjects) {
  return subjects.flatMap(({ name, subject }) =>
    Object.entries(checks).flatMap(([title, check]) =>
      check(subject, version).map((what) => `${name === '' ? '' : `${name}: `}${title}: ${what}`),
    ),
  );
}

async function binaries() {
  if (flags.local) {
    copyLocal();
    return [process.arch];
  }
  for (const arch of PLATFORMS) {
    const why = await installCompilers(arch);
    if (why !== '') throw new Error(`no binary for linux-${arch}: ${why}`);
    await buildPrebuilt(arch);
  }
  return PLATFORMS;
}

async function pack({ name, folder }) {
  const [{ filename, size, unpackedSize }] = JSON.parse(
    await run(['npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', out], { cwd: folder }),
  );
  console.log(`  ${name}: ${filename}, ${size} bytes packed, ${unpackedSize} unpacked`);
}

async function release() {
  await run(['node', 'scripts/setup.mjs'], { live: true });
  const arches = await binaries();
  const repository = process.env.RDMA_RPC_REPOSITORY;
  const packages = await progress(`packages of ${version}`, async () => {
    rmSync(out, { recursive: true, force: true });
    return assemble(out, { arches, repository });
  });
  const wrong = findings(
    flags.local ? packageChecks : { ...packageChecks, ...binaryChecks },
    packages.map((each) => ({ name: each.name, subject: each })),
  );
  const notYet = findings(repositoryChecks, [{ name: '', subject: version }]);
  for (const each of wrong) console.error(`✗ ${each}`);
  for (const each of notYet) console.error(`${flags.publish ? '✗' : '! before it is published:'} ${each}`);
  if (wrong.length > 0 || (flags.publish && notYet.length > 0))
    throw new Error('the checks above do not hold');
  await progress('what the packages are made of (SBOM)', () =>
    writeSbom(join(out, `rdma-rpc-${version}.cdx.json`)),
  );
  for (const each of packages) await pack(each);
  const really = flags.publish && !flags.local;
  const how = { really, provenance: process.env.CI === 'true', run };
  for (const each of packages) {
    const done = await progress(`npm publish (${each.name})`, () => publish(each, how));
    console.log(`  ${each.name}: ${done}`);
  }
}

try {
  await release();
  console.log(`release: ${version} is in ${flags.out}`);
} catch (error) {
  if (!(error instanceof CommandFailed) && !(error instanceof Error)) throw error;
  console.error(`release: ${error.message}${error.output === undefined ? '' : `\n${error.output}`}`);
  process.exit(1);
}
