/**
 * From a linked schema to output files: what the CLI's way in and the plugin's have in common. Called by
 * generate() and by the plugin.
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

/** No two files have the same output. */
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

/**
 * What the module of a file exports: its own names, and those of its public imports that it does not have
 * itself.
 */
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

/** `export *` of two modules that have one name exports it from neither. */
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
 * Those asked for, and of the files that no one else generates those that they refer to. The descriptor of
 * descriptor.proto is in the runtime.
 */
function emittedFiles(files: readonly File[], paths: ReadonlySet<string>): File[] {
  const wanted = new Set(files.filter(({ path }) => paths.has(path)));
  // Those that are added are looked at, too.
  for (const { uses, dependencies } of wanted) {
    const needed = [...uses, ...dependencies.filter(({ path }) => path !== descriptorPath)];
    for (const each of needed) if (isCompilers(each.path)) wanted.add(each);
  }
  return files.filter((file) => wanted.has(file) && !file.bundled);
}

/**
 * Output for the files with these paths. `diagnostics` has what the schema's files have reported, and goes on
 * being added to.
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
  // Also when something is wrong already: it finds what else is.
  const files = buildModel(schema, { runtimeApart, unknownFields, int64 });
  const emitted = emittedFiles(files, paths);
  checkPaths(schema, emitted);
  warnOfHidden(schema, emitted);
  refuse();
  const now = version();
  return emitted.flatMap((file) => emitFile(file, now, { target, importExtension, codecModule, enums }));
}
