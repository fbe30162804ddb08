/**
 * Formats the C++ sources.
 *
 *   node scripts/clang-format.mjs [--write]     without --write: only reports unformatted files
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';
import { install } from './debian.mjs';
import { NOT_RUN } from './results.mjs';

const FOLDERS = ['native', 'bench'];

function* sources(dir) {
  for (const entry of readdirSync(join(root, dir), { withFileTypes: true })) {
    const path = join(dir, entry.name);
    if (entry.isDirectory() && entry.name !== 'node_modules' && entry.name !== 'build') yield* sources(path);
    else if (/\.(cc|h)$/.test(entry.name)) yield path;
  }
}

const lacking = await install('format');
if (lacking !== '') {
  console.log(`not run: ${lacking}`);
  process.exit(NOT_RUN);
}
const files = FOLDERS.flatMap((folder) => [...sources(folder)]);
const mode = process.argv.includes('--write') ? ['-i'] : ['--dry-run', '-Werror'];
try {
  await run(['clang-format', ...mode, ...files]);
} catch (error) {
  console.error(error.output);
  process.exit(1);
}
