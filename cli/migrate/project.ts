/** The only part of `rdma-rpc migrate` that loads a compiler. */
import { Project, ScriptTarget } from 'ts-morph';
import type { Generated } from './generated.ts';
import { type MigratedFile, migrateFile } from './migrate-file.ts';

/** Returns the files of `paths` that use one of the libraries. Imports are not followed. */
export function migrateSources(paths: readonly string[], generated: Generated): MigratedFile[] {
  return paths.flatMap((path) => {
    // Each file gets its own project, because all names are resolved within the file, and only one file is in
    // memory at a time.
    const project = new Project({
      skipAddingFilesFromTsConfig: true,
      skipFileDependencyResolution: true,
      skipLoadingLibFiles: true,
      compilerOptions: { allowJs: true, noResolve: true, noLib: true, target: ScriptTarget.ESNext },
    });
    const found = migrateFile(project.addSourceFileAtPath(path), generated);
    return found === undefined ? [] : [found];
  });
}
