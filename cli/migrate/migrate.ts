/**
 * `rdma-rpc migrate`: converts code for grpc-js, nice-grpc and connect-es where the meaning is clear, and
 * lists what a person must change. Exit code 0 means that everything was converted, 1 that a part is left for
 * a person, and 2 that the command line is wrong.
 */
import { existsSync, statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import type { Command } from '#commander';
import pc from '#picocolors';
import { printable, printableLine, writeOutput } from '../output.ts';
import type { MigratedFile } from './migrate-file.ts';

interface MigrateFlags {
  readonly gen: string;
  readonly dryRun?: true;
}

export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .description(
      'convert code for @grpc/grpc-js, nice-grpc and connect-es; list the places that a person must change',
    )
    .argument(
      '[paths...]',
      'TypeScript and JavaScript files, and folders that contain them; default: the current folder',
    )
    .requiredOption('--gen <dir>', 'folder with the code that rdma-rpc gen made from the same .proto files')
    .option('--dry-run', 'print the changes as a diff instead of writing them')
    .action(async (paths: string[], flags: MigrateFlags) => {
      process.exitCode = await migrate(paths.length === 0 ? ['.'] : paths, flags);
    });
}

function usage(text: string): number {
  console.error(pc.red(`error: ${text}`));
  return 2;
}

async function migrate(paths: readonly string[], { gen, dryRun }: MigrateFlags): Promise<number> {
  const missing = paths.find((path) => !existsSync(path));
  if (missing !== undefined) return usage(`${missing}: no such file or folder`);
  if (!existsSync(gen) || !statSync(gen).isDirectory())
    return usage(`--gen ${gen}: no such folder; rdma-rpc gen makes it`);
  const found = await migrated(paths, resolve(gen));
  if (typeof found === 'string') return usage(found);
  const { unifiedDiff } = await import('./diff.ts');
  let changed = 0;
  let left = 0;
  for (const { path, change, left: places } of found) {
    const name = relative(process.cwd(), path);
    const edits = change.edits.all;
    if (edits.length > 0) {
      ++changed;
      if (dryRun === true)
        process.stdout.write(printable(unifiedDiff(name, change.source.getFullText(), edits)));
      else writeOutput(path, change.edits.render());
    }
    left += places.length;
    for (const { line, text, page } of places)
      console.error(printableLine(`${name}:${line}: ${text} (${page})`));
  }
  const verb = dryRun === true ? 'would be changed' : 'changed';
  console.error(
    `${changed} of ${found.length} files ${verb}, ${left} ${left === 1 ? 'place' : 'places'} left for you`,
  );
  return left === 0 ? 0 : 1;
}

/** Returns the migrated files, or a text that says why nothing can be migrated. */
async function migrated(paths: readonly string[], gen: string): Promise<readonly MigratedFile[] | string> {
  const [{ Generated }, { sourcesIn }] = await Promise.all([
    import('./generated.ts'),
    import('./sources.ts'),
  ]);
  const generated = new Generated(gen);
  if (generated.size === 0) return `--gen ${gen}: there is no output of rdma-rpc gen (.rdma.ts) in it`;
  const sources = sourcesIn(paths, gen);
  try {
    const { migrateSources } = await import('./project.ts');
    return migrateSources(sources, generated);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'ERR_MODULE_NOT_FOUND' || !message.includes("'ts-morph'")) throw error;
    const { MissingPackageError } = await import('../../codegen/index.ts');
    return new MissingPackageError('migrate', 'ts-morph').message;
  }
}
