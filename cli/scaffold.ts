/** `rdma-rpc scaffold`: creates or completes a class with every method of a service. */
import { type Command, Option } from '#commander';
import pc from '#picocolors';
import { GenerateError } from '../codegen/diagnostic.ts';
import type { Scaffolded } from '../codegen/scaffold/index.ts';
import { printDiagnostics } from './print.ts';

interface ScaffoldFlags {
  readonly gen: string;
  readonly into: string;
  readonly include: string[];
  readonly importExtension?: 'ts' | 'js' | 'none';
}

export function addScaffoldCommand(program: Command): void {
  program
    .command('scaffold')
    .description(
      'write the handlers of a service that a TypeScript file does not have yet; existing code stays as it is',
    )
    .argument('<files...>', '.proto files with services')
    .requiredOption('--gen <dir>', 'folder with the output of rdma-rpc gen')
    .requiredOption(
      '--into <file>',
      'TypeScript file that gets the handlers; it is created when it does not exist',
    )
    .option(
      '-I, --include <dir>',
      'folder that imports in .proto files are relative to; may be repeated',
      (value, previous: string[]) => [...previous, value],
      [],
    )
    .addOption(
      new Option('--import-extension <ext>', 'extension with which the file imports generated files').choices(
        ['ts', 'js', 'none'],
      ),
    )
    .action(runScaffold);
}

function line({ service, className, added, others }: Scaffolded): string {
  const what = added.length === 0 ? 'has every method' : `${added.join(', ')} added`;
  const rest = others.length === 0 ? '' : ` (not of the service: ${others.join(', ')})`;
  return `${service}: ${className}: ${what}${rest}`;
}

async function runScaffold(files: string[], flags: ScaffoldFlags): Promise<void> {
  // The modules are loaded here, so that other commands do not have to wait for a compiler.
  const { MissingPackageError, scaffold } = await import('../codegen/index.ts');
  try {
    const classes = await scaffold({ files, out: flags.gen, ...flags });
    if (classes.length === 0) {
      console.error(pc.red(`no service in ${files.join(', ')}`));
      process.exitCode = 1;
    }
    for (const each of classes) console.log(line(each));
  } catch (error) {
    process.exitCode = 1;
    if (error instanceof MissingPackageError) {
      console.error(pc.red(`error: ${error.message}`));
      return;
    }
    if (!(error instanceof GenerateError)) throw error;
    printDiagnostics(error.diagnostics);
    console.error('nothing was written');
  }
}
