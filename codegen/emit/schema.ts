/** From a linked schema to output files: what the CLI's way in and the plugin's have in common. Called by generate() and by the plugin. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Diagnostic, GenerateError } from '../diagnostic.ts';
import { placeOf, type Schema } from '../link/schema.ts';
import { buildModel } from '../model/build.ts';
import type { File } from '../model/model.ts';
import { bundledDirectory, descriptorPath } from '../source/files.ts';
import { emitFile, type Output } from './file.ts';
import { outputPath } from './scope.ts';
import type { Target } from './target.ts';

export interface SchemaOutputOptions {
  readonly target?: Target | undefined;
  readonly importExtension?: 'ts' | 'js' | undefined;
  readonly codecModule?: string | undefined;
  readonly runtimeApart: boolean;
  readonly unknownFields?: 'keep' | 'drop' | undefined;
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

/** Output for the files with these paths. `diagnostics` has what the schema's files have reported, and goes on being added to. */
export function emitSchema(
  schema: Schema,
  paths: ReadonlySet<string>,
  diagnostics: readonly Diagnostic[],
  options: SchemaOutputOptions,
): Output[] {
  const refuse = (): void => {
    if (diagnostics.some(({ severity }) => severity === 'error')) throw new GenerateError(diagnostics);
  };
  refuse();
  const {
    target = 'ts',
    importExtension = target,
    codecModule = 'rdma-rpc/codec',
    runtimeApart,
    unknownFields = 'drop',
  } = options;
  const files = buildModel(schema, { runtimeApart, unknownFields });
  refuse();
  const now = version();
  const emitted = files.filter(
    (file) => !file.bundled && (paths.has(file.path) || (file.used && file.path === descriptorPath)),
  );
  checkPaths(schema, emitted);
  refuse();
  return emitted.flatMap((file) => emitFile(file, now, { target, importExtension, codecModule }));
}
