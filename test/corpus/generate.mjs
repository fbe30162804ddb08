/**
 * Generates one group of the corpus. Files whose imports are missing from their package are left out. Of the
 * other files, only those that are known to be invalid may be refused.
 */
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { GenerateError, generate } from '../../dist/codegen/index.js';

/** Matches the error about an import that the package lacks. */
const lacking = /^import .* was not found/;

/** Invalid files, and their errors. protoc also refuses them. */
const wrong = [
  [/compiler\/ruby\//, /is declared in .* too/],
  [/json_format_proto3\.proto$/, /was not found/],
  [/json_enumval_custom_string\.proto$/, /edition "UNSTABLE" is not supported/],
  // The file has `reserved 1, 2, "features"`, which mixes numbers and names in one statement.
  [/protobufjs\/google\/protobuf\/descriptor\.proto$/, /expected a number/],
  // The file begins an enum of proto3 with 1.
  [/reflection\/build\/proto\/sample\/sample\.proto$/, /the first value of enum HelloStatus must be 0/],
  // The file does not import a type that it uses.
  [/reflection\/build\/proto\/sample\/vendor\/common\.proto$/, /unknown type DependentMessage/],
  // These files import "./kv.proto" and "./common.proto". A path with "." is refused by protoc and buf, too.
  [/etcd3\/proto\/rpc\.proto$/, /no part that is empty, "\." or "\.\."/],
  [/reflection\/build\/proto\/sample\/vendor\/vendor\.proto$/, /no part that is empty, "\." or "\.\."/],
];

const isWrong = ({ file, message }) =>
  wrong.some(([path, reason]) => path.test(file) && reason.test(message));

export async function generateGroup({ include }, files, out, target = 'ts') {
  let rest = [...files];
  const refused = new Set();
  const unexpected = [];
  // Files that import an omitted file are left out in the next round.
  for (let round = 0; round < 20 && rest.length > 0; round++) {
    try {
      const options = { include, target, ...(out && { out }) };
      const { outputs } = await generate({ files: rest, ...options });
      const messages = outputs.reduce(
        (all, { text }) => all + (text.match(/= \/\* @__PURE__ \*\/ \$generatedType\(/g)?.length ?? 0),
        0,
      );
      const missing = files.length - rest.length - refused.size;
      const notes = `${missing > 0 ? `, ${missing} left out` : ''}${refused.size > 0 ? `, ${refused.size} refused` : ''}`;
      return {
        generated: rest.length,
        incomplete: missing,
        wrong: refused.size,
        messages,
        unexpected,
        notes,
      };
    } catch (error) {
      if (!(error instanceof GenerateError)) throw error;
      const errors = error.diagnostics.filter(({ severity }) => severity === 'error');
      const bad = new Set(errors.map(({ file }) => file));
      for (const diagnostic of errors) {
        const { file, line, message } = diagnostic;
        if (isWrong(diagnostic)) refused.add(file);
        else if (!lacking.test(message)) unexpected.push(`${file}:${line}: ${message}`);
      }
      const before = rest.length;
      for (let size = -1; size !== bad.size; ) {
        size = bad.size;
        const fallen = rest.filter((file) => bad.has(shown(file)) || imports(file, include, bad));
        for (const file of fallen) bad.add(shown(file));
        rest = rest.filter((file) => !bad.has(shown(file)));
      }
      if (rest.length === before) break;
    }
  }
  return {
    generated: 0,
    incomplete: files.length - refused.size,
    wrong: refused.size,
    messages: 0,
    unexpected,
    notes: ', nothing left',
  };
}

/** Returns a file's name as diagnostics show it. */
const shown = (file) => {
  const path = relative(process.cwd(), file);
  return path.startsWith('..') ? file : path;
};

/** Returns whether a file imports a file that is left out. */
function imports(file, include, bad) {
  const paths = readFileSync(file, 'utf8').matchAll(/^import[^"\n]*"([^"]+)"/gm);
  return [...paths].some(([, path]) => include.some((directory) => bad.has(shown(join(directory, path)))));
}
