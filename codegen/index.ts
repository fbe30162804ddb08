/**
 * `rdma-rpc/codegen`: the generator as a function. The CLI is a thin layer over it. It is used only at build
 * time; code that runs in applications does not import it.
 */
import { join, resolve } from 'node:path';
import type { Diagnostic } from './diagnostic.ts';
import type { Output } from './emit/file.ts';
import { emitSchema } from './emit/schema.ts';
import { conflict } from './emit/target.ts';
import { loadFiles } from './load.ts';
import type { Scaffolded, ScaffoldOptions } from './scaffold/index.ts';
import { staleFiles } from './stale.ts';
import { textOf, writeTexts } from './write.ts';

export { type Diagnostic, formatDiagnostic, GenerateError } from './diagnostic.ts';
export type { Output } from './emit/file.ts';
export type { Scaffolded, ScaffoldOptions } from './scaffold/index.ts';

/** The error when a request needs an optional peer dependency that is not installed. */
export class MissingPackageError extends Error {
  override readonly name = 'MissingPackageError';

  constructor(what: string, packageName: string) {
    super(`${what} needs the package ${packageName}: npm install --save-dev ${packageName}`);
  }
}

export interface GenerateOptions {
  /** .proto files, each inside one of the include directories. Their imports are generated, too. */
  readonly files: readonly string[];
  /**
   * Directories to which imports are relative, and whose structure the output mirrors. Default: the deepest
   * directory that contains all files.
   */
  readonly include?: readonly string[];
  /**
   * Directory for the output, which is created when it is missing. When undefined, files are not written;
   * only their texts are returned.
   */
  readonly out?: string;
  /** Only lists the outdated files in `written`, and writes no files. Default false. */
  readonly check?: boolean;
  /**
   * `ts`: TypeScript that Node can run directly. `js`: a `.js` and a `.d.ts` for each file. Compilers parse
   * these in a fraction of the time, and they need no build. They are ES modules, so the package around them
   * must have `"type": "module"`. Default `ts`.
   */
  readonly target?: 'ts' | 'js';
  /**
   * Extension of imports between generated files, for the target `ts`. The other target always uses `js`.
   * Default `ts`, which Node's type stripping and `rewriteRelativeImportExtensions` need. `none` is for
   * bundlers and `moduleResolution: 'bundler'`; Node does not find such files.
   */
  readonly importExtension?: 'ts' | 'js' | 'none';
  /**
   * Module that the output imports instead of `rdma-rpc/generated/v1`. It must have all exports of that
   * module.
   */
  readonly codecModule?: string;
  /**
   * Generates the well-known types like any other file instead of importing them from the runtime. Default
   * false.
   */
  readonly emitWellKnownTypes?: boolean;
  /**
   * `keep`: unknown fields stay in `$unknownFields` of each message and are sent again, for programs that
   * pass messages through. Default `drop`. Messages with extension ranges always keep them.
   */
  readonly unknownFields?: 'keep' | 'drop';
  /**
   * The TypeScript type of 64-bit integers without `jstype`. With `number`, a value beyond ±(2^53 - 1) is an
   * error in both directions. Default `bigint`. Well-known types belong to the runtime, and always have
   * bigints.
   */
  readonly int64?: 'bigint' | 'string' | 'number';
  /**
   * `closed`: the type of an enum has only the declared values, so that a `switch` can be exhaustive and
   * values of other enums are errors. Messages are the same with both values: an unknown number from a newer
   * peer is decoded unchanged, although the type does not include it. Default `open`: the type includes all
   * numbers.
   */
  readonly enums?: 'open' | 'closed';
}

export interface Generated {
  readonly outputs: readonly Output[];
  /**
   * Absolute paths of the outputs whose text has changed. They are also listed when `check` prevented writing
   * them. Other files are not touched, so that watchers and builds see no change.
   */
  readonly written: readonly string[];
  /**
   * Absolute paths of files in the output directory that a generator made and that this run would not make.
   * Either their .proto is no longer in an include directory, or they are of the other target. They are not
   * removed. With `check` they make the run fail.
   */
  readonly stale: readonly string[];
  /** Absolute paths of all .proto files that were read. */
  readonly sources: readonly string[];
  readonly warnings: readonly Diagnostic[];
}

/**
 * Generates all files, or no file if it throws. Throws GenerateError with all errors of the input, or
 * TypeError for options that contradict each other.
 */
export async function generate(options: GenerateOptions): Promise<Generated> {
  const wrong = conflict(options);
  if (wrong !== '') throw new TypeError(wrong);
  const apart = options.emitWellKnownTypes !== true;
  const { schema, paths, directories, files, diagnostics } = loadFiles(
    options.files,
    options.include ?? [],
    apart,
  );
  const outputs = emitSchema(schema, new Set(paths), diagnostics, { ...options, runtimeApart: apart });
  const written =
    options.out === undefined ? [] : writeChanged(resolve(options.out), outputs, options.check === true);
  const stale = options.out === undefined ? [] : staleFiles(resolve(options.out), outputs, directories);
  return { outputs, written, stale, sources: files, warnings: diagnostics };
}

function writeChanged(directory: string, outputs: readonly Output[], check: boolean): string[] {
  const changed = new Map<string, string>();
  for (const { path, text } of outputs) {
    const file = join(directory, path);
    if (textOf(file) !== text) changed.set(file, text);
  }
  if (!check) writeTexts(changed);
  return [...changed.keys()];
}

/**
 * Adds missing methods to a file of handlers. Throws GenerateError with all errors of the input, and
 * MissingPackageError when ts-morph, an optional peer dependency of this package, is not installed.
 */
export async function scaffold(options: ScaffoldOptions): Promise<readonly Scaffolded[]> {
  // The module is loaded only here, so that generating needs no compiler and does not wait for one.
  const { scaffold: complete } = await import('./scaffold/index.ts').catch((error: unknown) => {
    const { code, message } = error as NodeJS.ErrnoException;
    throw code === 'ERR_MODULE_NOT_FOUND' && message.includes("'ts-morph'")
      ? new MissingPackageError('scaffold', 'ts-morph')
      : error;
  });
  return complete(options);
}
