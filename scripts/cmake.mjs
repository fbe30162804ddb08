/**
 * Configures a CMake build directory. A directory that was left by a failure, another generator or another
 * location is deleted first.
 */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';

/**
 * Runs `command`, which configures `directory` (relative to the root). If that fails, runs it once more with
 * an empty directory.
 */
export async function configure(directory, command) {
  const path = join(root, directory);
  const fresh = !existsSync(path);
  try {
    await run(command);
  } catch (error) {
    if (fresh) throw error;
    rmSync(path, { recursive: true, force: true });
    await run(command);
  }
}
