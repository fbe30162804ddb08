/**
 * `scaffold()` of `rdma-rpc/codegen`: creates or completes a file of handlers for all methods of the services
 * in some .proto files. The CLI calls it.
 */
import { dirname, relative, resolve, sep } from 'node:path';
import { GenerateError } from '../diagnostic.ts';
import { specifierOf } from '../emit/scope.ts';
import { loadFiles } from '../load.ts';
import { buildModel } from '../model/build.ts';
import { textOf, writeTexts } from '../write.ts';
import { type Scaffolded, scaffoldHandlers } from './handlers.ts';

export type { Scaffolded } from './handlers.ts';

export interface ScaffoldOptions {
  /** The .proto files with the services. */
  readonly files: readonly string[];
  /** The include directories, as for generate(). */
  readonly include?: readonly string[];
  /** The output directory of generate(). */
  readonly out: string;
  /** The TypeScript file for the handlers, which is created when it is missing. */
  readonly into: string;
  /** Extension of the file's imports of generated files. Default `ts`. */
  readonly importExtension?: 'ts' | 'js' | 'none';
}

/** Throws GenerateError with all errors of the input. Existing code is not changed. */
export function scaffold(options: ScaffoldOptions): readonly Scaffolded[] {
  const { schema, named, diagnostics } = loadFiles(options.files, options.include ?? [], true);
  const failed = () => diagnostics.some(({ severity }) => severity === 'error');
  const files = buildModel(schema, { runtimeApart: true, unknownFields: 'drop' });
  if (failed()) throw new GenerateError(diagnostics);
  const ours = files.filter(({ path }) => named.includes(path));
  const services = ours.flatMap((file) => file.services.map((service) => ({ service, file })));
  const into = resolve(options.into);
  const moduleOf = (output: string): string => {
    const path = relative(dirname(into), resolve(options.out, output)).split(sep).join('/');
    const { importExtension = 'ts' } = options;
    return specifierOf(path.replace(/\.ts$/, importExtension === 'none' ? '' : `.${importExtension}`));
  };
  const before = textOf(into) ?? '';
  const { text, classes } = scaffoldHandlers(before, services, moduleOf);
  if (text !== before) writeTexts(new Map([[into, text]]));
  return classes;
}
