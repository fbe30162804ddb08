/**
 * Publishes one package of a release. A release that failed in the middle can be published again, because
 * packages that the registry already has are left out. scripts/release.mjs uses it.
 */
import { CommandFailed } from '../command.mjs';

/**
 * Publishes the package in `folder`, or only tries to without `really`. `run` runs a command in a folder.
 * Resolves to what was done.
 */
export async function publish({ name, version, folder }, { really, provenance, run }) {
  if (really && (await isPublished(`${name}@${version}`, run))) return 'is in the registry already';
  const how = really ? (provenance ? ['--provenance'] : []) : ['--dry-run'];
  await run(['npm', 'publish', '--ignore-scripts', ...how], { cwd: folder });
  return really ? 'published' : 'could be published';
}

/** Resolves to whether the registry has this version. When it cannot be asked, `npm publish` says why. */
async function isPublished(name, run) {
  try {
    return (await run(['npm', 'view', name, 'version'], {})).trim() !== '';
  } catch (error) {
    if (error instanceof CommandFailed) return false;
    throw error;
  }
}
