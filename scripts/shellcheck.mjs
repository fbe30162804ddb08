/**
 * Checks the shell scripts, and records the result as a check (scripts/results.mjs). It ends with 77 where
 * shellcheck is not available.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './command.mjs';
import { install } from './debian.mjs';
import { NOT_RUN } from './results.mjs';

const FOLDER = 'test/rdma-vm';

const lacking = await install('shell');
if (lacking !== '') {
  console.log(`not run: ${lacking}`);
  process.exit(NOT_RUN);
}
const scripts = readdirSync(join(root, FOLDER)).filter((file) => file.endsWith('.sh'));
try {
  await run(['shellcheck', '.ci/run', ...scripts.map((file) => join(FOLDER, file))]);
} catch (error) {
  console.error(error.output);
  process.exit(1);
}
