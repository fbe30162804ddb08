/**
 * Configures a CMake build directory. One left by a failure, another generator or another place is thrown
 * away first.
 */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';

/**
 * Runs `command`, which configures `directory` (relative to the root); once more from nothing when it fails.
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
