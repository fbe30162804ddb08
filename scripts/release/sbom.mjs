/**
 * Lists the components of the packages, as CycloneDX: npm's own list (`npm sbom`) of the packages that this
 * repository installs, without those that are only used to build and test. The packages have no dependencies,
 * so the rest are the libraries whose code is in them. dist/vendor/NOTICES has their licences.
 * scripts/release.mjs uses this file.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from '../command.mjs';

/** Matches `name version (licence)`, with which scripts/vendor.mjs begins each section. */
const HEADING = /^((?:@[\w.-]+\/)?[\w.-]+) (\d[\w.+-]*) \(/gm;

/** Returns the libraries that are inside of the packages, as `name@version`. */
function vendored() {
  const notices = readFileSync(join(root, 'dist/vendor/NOTICES'), 'utf8');
  return new Set([...notices.matchAll(HEADING)].map(([, name, version]) => `${name}@${version}`));
}

export async function writeSbom(path) {
  const all = JSON.parse(
    await run(['npm', 'sbom', '--sbom-format=cyclonedx', '--sbom-type=library', '--package-lock-only']),
  );
  const inside = vendored();
  const components = all.components
    .filter(({ name, version }) => inside.has(`${name}@${version}`))
    // npm marks each of these libraries as used for development only. This is wrong for the package, so the
    // properties are dropped.
    .map((each) => ({ ...each, properties: [] }));
  if (components.length !== inside.size)
    throw new Error(
      `npm sbom has ${components.length} of ${inside.size} libraries: ${[...inside].join(', ')}`,
    );
  const references = new Set(components.map((each) => each['bom-ref']));
  const top = all.metadata.component['bom-ref'];
  // npm names the component after the folder of the clone.
  all.metadata.component.name = 'rdma-rpc';
  const dependencies = [
    { ref: top, dependsOn: [...references] },
    ...[...references].map((ref) => ({ ref, dependsOn: [] })),
  ];
  writeFileSync(path, `${JSON.stringify({ ...all, components, dependencies }, undefined, 2)}\n`);
}
