/**
 * Generates what the project needs of its own .proto files, as gen-targets.json lists them. Not through the
 * command line tool: that imports some of it. Called by setup.mjs when dist/codegen has been compiled.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { globSync } from 'tinyglobby';
import { formatDiagnostic, GenerateError, generate } from '../dist/codegen/index.js';
import { root } from './command.mjs';

try {
  for (const { files, include, out, ...options } of JSON.parse(
    readFileSync(join(root, 'scripts/gen-targets.json'), 'utf8'),
  )) {
    const found = globSync(files, { cwd: root, absolute: true }).sort();
    const { outputs } = await generate({
      files: found,
      include: [join(root, include)],
      out: join(root, out),
      ...options,
    });
    console.log(`${out}: ${outputs.length} files`);
  }
} catch (error) {
  if (!(error instanceof GenerateError)) throw error;
  for (const diagnostic of error.diagnostics) console.error(formatDiagnostic(diagnostic));
  process.exitCode = 1;
}
