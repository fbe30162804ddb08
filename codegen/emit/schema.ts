/**
 * Generates the output files of a linked schema. generate() and the plugin call it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Diagnostic, GenerateError } from '../diagnostic.ts';
import { placeOf, type Schema } from '../link/schema.ts';
import { buildModel } from '../model/build.ts';
import type { File, Int64 } from '../model/model.ts';
import { bundledDirectory, descriptorPath, isCompilers } from '../source/files.ts';
import { emitFile, type Output } from './file.ts';
import { outputPath } from './scope.ts';
import type { ImportExtension, Target } from './target.ts';

export interface SchemaOutputOptions {
  readonly target?: Target | undefined;
  readonly importExtension?: ImportExtension | undefined;
  readonly codecModule?: string | undefined;
  readonly runtimeApart: boolean;
  readonly unknownFields?: 'keep' | 'drop' | undefined;
  readonly int64?: Int64 | undefined;
  readonly enums?: 'open' | 'closed' | undefined;
}

function version(): string {
  const manifest = JSON.parse(readFileSync(join(bundledDirectory(), '..', 'package.json'), 'utf8')) as {
    version: string;
  };
  return manifest.version;
}

/** Reports files that would have the same output. */
function checkPaths(schema: Schema, files: readonly File[]): void {
  const sources = new Map<string, string>();
  for (const { path } of files) {
    const output = outputPath(path);
    const other = sources.get(output);
    const file = schema.files.get(path);
    if (other !== undefined && file !== undefined)
      file.reporter.report(placeOf(file, ''), `${path} and ${other} both become ${output}: rename one`);
    sources.set(output, path);
  }
}

/** Returns the exports of a file's module: its own names, and the other names of its public imports. */
function exportsOf(file: File, known: Map<File, Set<string>>): Set<string> {
  let names = known.get(file);
  if (names !== undefined) return names;
  names = new Set([
    file.descriptor,
    ...file.messages.flatMap(({ identifier, init, options, defaults }) => [
      identifier,
      init,
      options,
      defaults,
    ]),
    ...file.enums.flatMap(({ identifier, names }) => [identifier, names]),
    ...file.services.flatMap(({ definition, client, handlers }) => [definition, client, handlers]),
    ...file.extensions.map(({ identifier }) => identifier),
  ]);
  known.set(file, names);
  for (const each of file.publicImports) for (const name of exportsOf(each, known)) names.add(name);
  names.delete('');
  return names;
}

/**
 * Warns of names that occur in two public imports, because `export *` of both imports exports neither name.
 */
function warnOfHidden(schema: Schema, files: readonly File[]): void {
  const known = new Map<File, Set<string>>();
  for (const file of files) {
    const met = new Map<string, File>();
    for (const each of file.publicImports) {
      for (const name of exportsOf(each, known)) {
        const other = met.get(name);
        const source = schema.files.get(file.path);
        if (other !== undefined && source !== undefined)
          source.reporter.report(
            placeOf(source, ''),
            `${other.path} and ${each.path}, both imported publicly, have the name ${name}: import it from its own module`,
            'warning',
          );
        met.set(name, each);
      }
    }
  }
}

/**
 * Returns the requested files, and the files built into compilers to which these files refer. An import of
 * descriptor.proto does not count, because its descriptor is in the runtime.
 */
function emittedFiles(files: readonly File[], paths: ReadonlySet<string>): File[] {
  const wanted = new Set(files.filter(({ path }) => paths.has(path)));
  // The loop also visits the files that it adds.
  for (const { uses, dependencies } of wanted) {
    const needed = [...uses, ...dependencies.filter(({ path }) => path !== descriptorPath)];
    for (const each of needed) if (isCompilers(each.path)) wanted.add(each);
  }
  return files.filter((file) => wanted.has(file) && !file.bundled);
}

/**
 * Returns the output for the files with these paths. `diagnostics` contains the reports about the schema's
 * files, and gets further reports.
 */
export function emitSchema(
  schema: Schema,
  paths: ReadonlySet<string>,
  diagnostics: readonly Diagnostic[],
  options: SchemaOutputOptions,
): Output[] {
  const refuse = (): void => {
    if (diagnostics.some(({ severity }) => severity === 'error')) throw new GenerateError(diagnostics);
  };
  const {
    target = 'ts',
    importExtension = target,
    codecModule = 'rdma-rpc/generated/v1',
    runtimeApart,
    unknownFields = 'drop',
    int64,
    enums = 'open',
  } = options;
  // The model is built even after errors, in order to find all other errors.
  const files = buildModel(schema, { runtimeApart, unknownFields, int64 });
  const emitted = emittedFiles(files, paths);
  checkPaths(schema, emitted);
  warnOfHidden(schema, emitted);
  refuse();
  const now = version();
  return emitted.flatMap((file) => emitFile(file, now, { target, importExtension, codecModule, enums }));
}
