/** `rdma-rpc gen`: .proto files to TypeScript. Finds the files, calls generate(), prints what it says; `--watch` repeats that. */
import { resolve } from 'node:path';
import { type Command, CommanderError, Option } from 'commander';
import pc from 'picocolors';
import { globSync } from 'tinyglobby';
import { type Diagnostic, formatDiagnostic, GenerateError, quoteSource } from '../codegen/diagnostic.ts';
import type { Generated, GenerateOptions } from '../codegen/index.ts';

interface GenFlags {
  readonly out: string;
  readonly include: string[];
  readonly importExtension: 'ts' | 'js';
  readonly watch?: true;
}

export function addGenCommand(program: Command): void {
  program
    .command('gen')
    .description('generate TypeScript from .proto files')
    .argument('<files...>', '.proto files or globs; what they import is generated too')
    .requiredOption('-o, --out <dir>', 'directory for the output')
    .option(
      '-I, --include <dir>',
      'where imports are looked up and what the output mirrors; may be repeated',
      collect,
      [],
    )
    .addOption(
      new Option('--import-extension <ext>', 'extension of imports between generated files')
        .choices(['ts', 'js'])
        .default('ts'),
    )
    .option('--watch', 'generate again whenever a .proto changes')
    .action(runGen);
}

function collect(value: string, previous: string[]): string[] {
  return [...previous, value];
}

/** Files as given, globs expanded. */
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

function print(diagnostics: readonly Diagnostic[]): void {
  for (const diagnostic of diagnostics) {
    const colour = diagnostic.severity === 'error' ? pc.red : pc.yellow;
    console.error(colour(formatDiagnostic(diagnostic)));
    const quoted = quoteSource(diagnostic);
    if (quoted !== '') console.error(pc.dim(quoted));
  }
}

/** One generation, with its outcome on the terminal. Undefined: the input is wrong, nothing was written. */
async function generateOnce(options: GenerateOptions): Promise<Generated | undefined> {
  const start = performance.now();
  // Loaded here, so that help and wrong command lines need not wait for a parser and a compiler.
  const { generate } = await import('../codegen/index.ts');
  try {
    const generated = await generate(options);
    print(generated.warnings);
    const count = `${generated.outputs.length} file${generated.outputs.length === 1 ? '' : 's'}`;
    console.log(
      `${count} generated in ${options.out} (${generated.written.length} changed, ${Math.round(performance.now() - start)} ms)`,
    );
    return generated;
  } catch (error) {
    if (!(error instanceof GenerateError)) throw error;
    print(error.diagnostics);
    console.error('nothing was written');
    return undefined;
  }
}

async function runGen(patterns: string[], flags: GenFlags): Promise<void> {
  const options = (): GenerateOptions => ({
    files: findFiles(patterns),
    include: flags.include,
    out: flags.out,
    importExtension: flags.importExtension,
  });
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
    directories: flags.include,
    onChange: async () => (await generateOnce(options()))?.sources,
  });
}
