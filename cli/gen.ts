/**
 * `rdma-rpc gen`: generates TypeScript from .proto files. It finds the files, calls generate() and prints its
 * diagnostics; `--watch` repeats that.
 */
import { relative, resolve } from 'node:path';
import { type Command, CommanderError, Option } from '#commander';
import pc from '#picocolors';
import { globSync } from '#tinyglobby';
import { GenerateError } from '../codegen/diagnostic.ts';
import { conflict } from '../codegen/emit/target.ts';
import type { Generated, GenerateOptions } from '../codegen/index.ts';
import { findConfig, type GenConfig } from './gen-config.ts';
import { moduleNote } from './module-note.ts';
import { printDiagnostics } from './print.ts';

interface GenFlags {
  readonly out?: string;
  readonly include: string[];
  readonly target?: 'ts' | 'js';
  readonly importExtension?: 'ts' | 'js' | 'none';
  readonly unknownFields?: 'keep' | 'drop';
  readonly int64?: 'bigint' | 'string' | 'number';
  readonly enums?: 'open' | 'closed';
  readonly check?: true;
  readonly watch?: true;
}

export function addGenCommand(program: Command): void {
  program
    .command('gen')
    .description('generate TypeScript or JavaScript from .proto files')
    .argument(
      '[files...]',
      '.proto files or globs; their imports are generated, too. Default: as configured in package.json',
    )
    .option('-o, --out <dir>', 'folder for the output')
    .option(
      '-I, --include <dir>',
      'folder to which imports in .proto files are relative; the output has the same subfolders; may be repeated',
      collect,
      [],
    )
    .addOption(
      new Option(
        '--target <what>',
        'output TypeScript, or JavaScript with declarations; default: ts',
      ).choices(['ts', 'js']),
    )
    .addOption(
      new Option(
        '--import-extension <ext>',
        'extension of imports between generated files; default: ts',
      ).choices(['ts', 'js', 'none']),
    )
    .addOption(
      new Option(
        '--unknown-fields <what>',
        'what messages do with fields that only a newer .proto file has; default: drop',
      ).choices(['keep', 'drop']),
    )
    .addOption(
      new Option(
        '--int64 <type>',
        'TypeScript type of 64-bit integers without jstype; default: bigint',
      ).choices(['bigint', 'string', 'number']),
    )
    .addOption(
      new Option(
        '--enums <types>',
        'whether enum types include all numbers (open) or only the declared values (closed); default: open',
      ).choices(['open', 'closed']),
    )
    .option('--check', 'write nothing; exit code 1 when the output is not up to date')
    .option('--watch', 'keep running, and generate again whenever a .proto file changes')
    .action(runGen);
}

function collect(value: string, previous: string[]): string[] {
  return [...previous, value];
}

/** Returns the files as given, with globs expanded. */
function findFiles(patterns: readonly string[]): string[] {
  const isGlob = (pattern: string) => /[*?[\]{}!]/.test(pattern);
  const found = globSync(patterns.filter(isGlob), { absolute: true });
  const files = new Set([
    ...patterns.filter((pattern) => !isGlob(pattern)).map((file) => resolve(file)),
    ...found.sort(),
  ]);
  if (files.size === 0)
    throw new CommanderError(2, 'rdma-rpc.noFiles', `no file matches ${patterns.join(' ')}`);
  return [...files];
}

/** `--check`: fails if a file would be written. */
function checked(generated: Generated, { out = '' }: GenerateOptions): Generated | undefined {
  if (generated.written.length + generated.stale.length === 0) {
    console.log(
      `${generated.outputs.length} file${generated.outputs.length === 1 ? '' : 's'} in ${out} up to date`,
    );
    return generated;
  }
  for (const file of generated.written)
    console.error(pc.red(`${relative(process.cwd(), file)}: not up to date`));
  for (const file of generated.stale)
    console.error(pc.red(`${relative(process.cwd(), file)}: it is no longer generated; remove it`));
  if (generated.written.length > 0) console.error('run rdma-rpc gen without --check');
  return undefined;
}

function readConfig(): GenConfig {
  try {
    const config = findConfig(process.cwd());
    if (config !== undefined) return config;
  } catch (error) {
    throw new CommanderError(2, 'rdma-rpc.config', (error as Error).message);
  }
  throw new CommanderError(
    2,
    'rdma-rpc.noFiles',
    'no files, and no block "rdma-rpc" in a package.json that has them',
  );
}

/**
 * Generates once and prints the outcome. Returns undefined when the input has errors; then no file was
 * written.
 */
async function generateOnce(options: GenerateOptions): Promise<Generated | undefined> {
  const start = performance.now();
  // The module is loaded here, so that help and errors in the command line do not have to wait for a parser
  // and a compiler.
  const { generate } = await import('../codegen/index.ts');
  try {
    const generated = await generate(options);
    printDiagnostics(generated.warnings);
    if (options.check === true) return checked(generated, options);
    const count = `${generated.outputs.length} file${generated.outputs.length === 1 ? '' : 's'}`;
    for (const file of generated.stale)
      console.error(pc.yellow(`${relative(process.cwd(), file)}: it is no longer generated; remove it`));
    console.log(
      `${count} generated in ${options.out} (${generated.written.length} changed, ${Math.round(performance.now() - start)} ms)`,
    );
    // The note is printed only when a file has changed, because the arrangement may be intended.
    const note = generated.written.length === 0 ? '' : moduleNote(options.out ?? '', options.target ?? 'ts');
    if (note !== '') console.error(note);
    return generated;
  } catch (error) {
    if (!(error instanceof GenerateError)) throw error;
    printDiagnostics(error.diagnostics);
    console.error('nothing was written');
    return undefined;
  }
}

async function runGen(patterns: string[], flags: GenFlags): Promise<void> {
  const options = (): GenerateOptions => {
    const config = patterns.length > 0 ? {} : readConfig();
    const out = flags.out ?? config.out;
    const target = flags.target ?? config.target;
    const importExtension = flags.importExtension ?? config.importExtension;
    const unknownFields = flags.unknownFields ?? config.unknownFields;
    const int64 = flags.int64 ?? config.int64;
    const enums = flags.enums ?? config.enums;
    const wrong = conflict({ target, importExtension });
    if (wrong !== '') throw new CommanderError(2, 'rdma-rpc.conflict', wrong);
    if (out === undefined)
      throw new CommanderError(2, 'rdma-rpc.noOut', "required option '-o, --out <dir>' not specified");
    return {
      files: findFiles(patterns.length > 0 ? patterns : (config.files ?? [])),
      include: flags.include.length > 0 ? flags.include : (config.include ?? []),
      out,
      check: flags.check === true,
      ...(target && { target }),
      ...(importExtension && { importExtension }),
      ...(unknownFields && { unknownFields }),
      ...(int64 && { int64 }),
      ...(enums && { enums }),
    };
  };
  let first: GenerateOptions;
  try {
    first = options();
  } catch (error) {
    if (error instanceof CommanderError) console.error(pc.red(`error: ${error.message}`));
    throw error;
  }
  const generated = await generateOnce(first);
  if (flags.watch !== true) {
    process.exitCode = generated === undefined ? 1 : 0;
    return;
  }
  const { watchFiles } = await import('./watch.ts');
  await watchFiles({
    initial: generated?.sources ?? first.files.map((file) => resolve(file)),
    directories: first.include ?? [],
    onChange: async () => (await generateOnce(options()))?.sources,
  });
}
