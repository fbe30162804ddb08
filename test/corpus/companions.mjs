/**
 * Runs the plugin under buf, which passes all files to it and requests the output of some. The output imports
 * no file that is not generated. Files that every compiler contains are generated where their messages are
 * used, and none of them is generated only for options. plugin.mjs calls it.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { globSync } from 'tinyglobby';

const google = 'google/protobuf';
const notes = (field) =>
  `syntax = "proto3"; package notes; import "${google}/descriptor.proto";
message Note { string text = 1; ${field} } extend google.protobuf.FieldOptions { Note note = 50001; }`;

const protos = {
  'notes.proto': notes(''),
  'option.proto':
    'edition = "2024"; package o; import option "notes.proto"; message O { int32 x = 1 [(notes.note).text = "x"]; }',
  'plain.proto':
    'syntax = "proto3"; package p; import "notes.proto"; message P { int32 x = 1 [(notes.note).text = "x"]; }',
  'field.proto': notes('google.protobuf.FieldOptions more = 2;').replaceAll(/\bnotes?\b/g, 'field'),
  'features.proto': `edition = "2023"; package f; import "${google}/go_features.proto";
option features.(pb.go).api_level = API_OPAQUE; message F { int32 x = 1; }`,
  'used.proto': `syntax = "proto3"; package u; import "${google}/api.proto"; import "${google}/timestamp.proto";
import "${google}/compiler/plugin.proto";
message U { google.protobuf.Api api = 1; google.protobuf.Timestamp at = 2; google.protobuf.compiler.CodeGeneratorRequest request = 3; }`,
};

/**
 * The output when each file is requested alone: the files that appear beside it, and, with include_imports,
 * those for the files that it imports.
 */
const made = {
  'notes.proto': [[], []],
  'option.proto': [[], ['notes']],
  // When requested alone, this file would need a file of the user, which the user must request.
  'plain.proto': [undefined, ['notes']],
  'field.proto': [[`${google}/descriptor`], [`${google}/descriptor`]],
  'features.proto': [[`${google}/go_features`], [`${google}/go_features`]],
};
made['used.proto'] = Array(2).fill(
  ['api', 'compiler/plugin', 'descriptor', 'source_context', 'type'].map((name) => `${google}/${name}`),
);

/**
 * `prepare(place)` makes an empty directory, and returns an environment in which the plugin is on the PATH.
 * `generate(place, path, template, env)` runs buf, and returns buf's errors.
 */
export function companionFaults(place, prepare, generate) {
  const errors = [];
  for (const [path, expected] of Object.entries(made)) {
    for (const [i, imports] of [false, true].entries()) {
      if (expected[i] === undefined) continue;
      const env = prepare(place);
      mkdirSync(join(place, 'proto'), { recursive: true });
      for (const [name, text] of Object.entries(protos)) writeFileSync(join(place, 'proto', name), text);
      const what = `${path}${imports ? ' with include_imports' : ''}`;
      const complaint = generate(place, `proto/${path}`, imports, env);
      if (complaint !== '') errors.push(`${what}: ${complaint}`);
      const out = join(place, 'out');
      const files = globSync('**/*', { cwd: out }).sort();
      const wanted = [path.replace('.proto', ''), ...expected[i]].map((each) => `${each}.rdma.ts`).sort();
      if (files.join() !== wanted.join())
        errors.push(`${what}: made ${files.join(' ')}, not ${wanted.join(' ')}`);
      for (const file of files)
        for (const [, to] of readFileSync(join(out, file), 'utf8').matchAll(/from '(\.[^']+)'/g))
          if (!existsSync(join(out, dirname(file), to)))
            errors.push(`${what}: ${file} imports ${to}, which is not there`);
    }
  }
  return {
    count: Object.values(made)
      .flat()
      .filter((expected) => expected !== undefined).length,
    errors,
  };
}
