/**
 * Publishes one package of a release. A release that failed in the middle can be published again, because
 * packages that the registry already has are left out. scripts/release.mjs uses it.
 */
import { CommandFailed } from '../command.mjs';

/**
 * Publishes the package in `folder`, or only tries to without `really`. `run` runs a command in a folder.
 * Resolves to what was done. A trial asks the registry for nothing, and fails when npm warns of the package.
 */
export async function publish({ name, version, folder }, { really, provenance, run }) {
  const command = ['npm', 'publish', '--ignore-scripts'];
  if (!really) {
    const warnings = warningsIn(await run([...command, '--dry-run', '--offline'], { cwd: folder }));
    if (warnings.length === 0) return 'could be published';
    throw new Error(`npm publish warns of ${name}:\n${warnings.join('\n')}`);
  }
  if (await isPublished(`${name}@${version}`, run)) return 'is in the registry already';
  await run([...command, ...(provenance ? ['--provenance'] : [])], { cwd: folder });
  return 'published';
}

/** Returns npm's warnings, except those that are about this machine: its login and its npm configuration. */
const warningsIn = (output) =>
  output
    .split('\n')
    .filter((line) => /^npm warn /i.test(line))
    .filter((line) => !/requires you to be logged in to |^npm warn (config|Unknown \w+ config) /i.test(line));

/** Resolves to whether the registry has this version. When it cannot be asked, `npm publish` says why. */
async function isPublished(name, run) {
  try {
    return (await run(['npm', 'view', name, 'version'], {})).trim() !== '';
  } catch (error) {
    if (error instanceof CommandFailed) return false;
    throw error;
  }
}
