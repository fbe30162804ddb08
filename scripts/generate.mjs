/**
 * Generates the code for the project's own .proto files, as listed in gen-targets.json. It does not use the
 * command line tool, which imports some of that code. setup.mjs calls it when dist/codegen has been compiled.
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
