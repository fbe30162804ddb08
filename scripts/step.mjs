/**
 * A step of a build. A step is skipped while its inputs have the same content as when it last succeeded.
 * Otherwise it runs with a line of progress. The fingerprints are in build/.stamps.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CommandFailed, excerpt, root } from './command.mjs';

const stamps = join(root, 'build', '.stamps');
const SKIPPED = new Set(['node_modules', 'dist', 'build', '.git']);
const TICK_MS = 1000;
/** In a pipe or a log, each sign of progress is a separate line. */
const LINE_MS = 10_000;

function* filesUnder(path, ignore) {
  const stat = statSync(join(root, path), { throwIfNoEntry: false });
  if (stat === undefined || ignore.includes(path)) return;
  if (!stat.isDirectory()) {
    yield path;
    return;
  }
  for (const name of readdirSync(join(root, path)).sort()) {
    if (!SKIPPED.has(name)) yield* filesUnder(join(path, name), ignore);
  }
}

/**
 * Returns a hash of the names and contents of all files under `paths` (relative to the root), and of `salt`.
 * The location of the checkout is not included: a build remains valid when the checkout is moved, and CMake
 * recreates its own directory (cmake.mjs). The Node version that builds is not included either, because one
 * addon fits all versions by Node-API.
 */
export function fingerprint(paths, { ignore = [], salt = '' } = {}) {
  const hash = createHash('sha256').update(salt);
  for (const path of paths) {
    for (const file of filesUnder(path, ignore)) {
      hash.update(`\0${file}\0`).update(readFileSync(join(root, file)));
    }
  }
  return hash.digest('hex');
}

/**
 * Runs `action` under a line that shows the work and its duration. On a terminal the line changes; elsewhere
 * a new line follows every ten seconds.
 */
export async function progress(title, action) {
  const begin = performance.now();
  const seconds = () => `${((performance.now() - begin) / 1000).toFixed(1)} s`;
  const terminal = process.stdout.isTTY === true;
  const tick = () =>
    process.stdout.write(terminal ? `\r  ${title} … ${seconds()} ` : `  ${title} … ${seconds()}\n`);
  const timer = setInterval(tick, terminal ? TICK_MS : LINE_MS);
  process.stdout.write(terminal ? `  ${title} …` : `  ${title} …\n`);
  const end = (line) => {
    clearInterval(timer);
    process.stdout.write(`${terminal ? '\r\x1b[K' : ''}${line}\n`);
  };
  try {
    const result = await action();
    end(`✓ ${title} (${seconds()})`);
    return result;
  } catch (error) {
    end(`✗ ${title} (${seconds()})`);
    if (error instanceof CommandFailed && error.output !== '') console.error(excerpt(error.output));
    throw error;
  }
}

/**
 * Runs `action` unless `inputs` are unchanged since it last succeeded and all `outputs` exist. Returns
 * whether it ran. The fingerprint is taken before `action` runs, so that the step runs again next time if an
 * input is edited during the step.
 */
export async function step({ name, title, inputs, outputs, ignore, salt, action }) {
  const stamp = join(stamps, name);
  const now = fingerprint(inputs, { ignore, salt });
  const before = existsSync(stamp) ? readFileSync(stamp, 'utf8') : '';
  if (before === now && outputs.every((output) => existsSync(join(root, output)))) return false;
  rmSync(stamp, { force: true });
  await progress(title, action);
  mkdirSync(stamps, { recursive: true });
  writeFileSync(stamp, now);
  return true;
}
