/**
 * `rdma-rpc/codegen`: the generator as a function. The CLI is a thin layer over it. Build time only: nothing
 * at run time imports it.
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

/** What was asked for needs an optional peer that is not installed. */
export class MissingPackageError extends Error {
  override readonly name = 'MissingPackageError';

  constructor(what: string, packageName: string) {
    super(`${what} needs the package ${packageName}: npm install --save-dev ${packageName}`);
  }
}

export interface GenerateOptions {
  /** .proto files, each inside one of the include directories. What they import is generated too. */
  readonly files: readonly string[];
  /**
   * Directories that imports are relative to, and that the output mirrors. Default: the deepest directory
   * that has all files in it.
   */
  readonly include?: readonly string[];
  /**
   * Directory for the output, made when missing. Undefined: nothing is written, the texts are only returned.
   */
  readonly out?: string;
  /** Write nothing, only say in `written` what is not up to date. Default false. */
  readonly check?: boolean;
  /**
   * `ts`: TypeScript that Node can run as it is. `js`: a `.js` and a `.d.ts` for each file, which compilers
   * read in a fraction of the time and which needs no build at all; modules, so the package around them must
   * have `"type": "module"`. Default `ts`.
   */
  readonly target?: 'ts' | 'js';
  /**
   * Extension of imports between generated files, for the target `ts`; the other one has `js`. Default `ts`:
   * what Node's type stripping and `rewriteRelativeImportExtensions` want. `none` is for bundlers and
   * `moduleResolution: 'bundler'`; Node finds no such file.
   */
  readonly importExtension?: 'ts' | 'js' | 'none';
  /** Module that the output imports instead of `rdma-rpc/generated/v1`; it must have all that this has. */
  readonly codecModule?: string;
  /**
   * Generate the well-known types like any other file instead of importing them from the runtime. Default
   * false.
   */
  readonly emitWellKnownTypes?: boolean;
  /**
   * `keep`: fields that this version does not know stay in `$unknownFields` of each message and are sent on,
   * for programs that pass messages through. Default `drop`; messages with extension ranges keep them always.
   */
  readonly unknownFields?: 'keep' | 'drop';
  /**
   * What 64-bit integers are in TypeScript, where `jstype` of a field does not say it. As `number`, one
   * beyond ±(2^53 - 1) is an error in both directions. Default `bigint`. Well-known types are in the runtime,
   * and always have bigints.
   */
  readonly int64?: 'bigint' | 'string' | 'number';
  /**
   * `closed`: the type of an enum has its values and nothing else, so that a `switch` can be exhaustive and
   * values of other enums are errors. Messages are the same: a number that a newer peer sends is decoded as
   * it is, and meets a type that does not know it. Default `open`: the type has all numbers.
   */
  readonly enums?: 'open' | 'closed';
}

export interface Generated {
  readonly outputs: readonly Output[];
  /**
   * Those whose text has changed, absolute, also when `check` kept them from being written. The others are
   * left alone, so that watchers and builds stay calm.
   */
  readonly written: readonly string[];
  /**
   * Files in the output directory that a generator made and this run would not, absolute: their .proto is in
   * none of the include directories any more, or they are of the other target. Nothing removes them; with
   * `check` they are a reason to fail.
   */
  readonly stale: readonly string[];
  /** Every .proto that was read, absolute. */
  readonly sources: readonly string[];
  readonly warnings: readonly Diagnostic[];
}

/**
 * Generates all or nothing. Throws GenerateError with everything that is wrong with the input, TypeError for
 * options that contradict each other.
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
 * Completes a file of handlers. Throws GenerateError with everything that is wrong with the input, and
 * MissingPackageError where ts-morph, an optional peer of this package, is not installed.
 */
export async function scaffold(options: ScaffoldOptions): Promise<readonly Scaffolded[]> {
  // Loaded here, so that who only generates needs no compiler, and does not wait for one.
  const { scaffold: complete } = await import('./scaffold/index.ts').catch((error: unknown) => {
    const { code, message } = error as NodeJS.ErrnoException;
    throw code === 'ERR_MODULE_NOT_FOUND' && message.includes("'ts-morph'")
      ? new MissingPackageError('scaffold', 'ts-morph')
      : error;
  });
  return complete(options);
}
