/** Finds the files that `rdma-rpc migrate` reads. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isGeneratedImport, isGeneratedModule } from './generated-modules.ts';
import { isLibrary } from './libraries.ts';

const extension = /\.([cm]?[jt]s|tsx|jsx)$/;
const skipped = new Set(['node_modules', 'dist', 'build', 'coverage', 'vendor']);
const specifier = /\bfrom\s*['"]([^'"\n]+)['"]|\brequire\(\s*['"]([^'"\n]+)['"]/g;

/**
 * Returns the sorted absolute paths of files that import one of the libraries or generated code. Generated
 * files, declarations, and the folders `gen` and of packages are left out.
 */
export function sourcesIn(paths: readonly string[], gen: string): string[] {
  const found = new Set<string>();
  const add = (path: string): void => {
    if (!extension.test(path) || /\.d\.[cm]?ts$/.test(path)) return;
    const text = readFileSync(path, 'utf8');
    if (!isGeneratedModule(path, text) && concerns(text, path)) found.add(path);
  };
  const walk = (folder: string): void => {
    if (folder === gen) return;
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && !skipped.has(entry.name) && !entry.name.startsWith('.')) walk(path);
      else if (entry.isFile()) add(path);
    }
  };
  for (const path of paths.map((each) => resolve(each))) {
    if (statSync(path).isDirectory()) walk(path);
    else add(path);
  }
  return [...found].sort();
}

/** Checks the text quickly, so that the compiler reads only files that may change. */
function concerns(text: string, path: string): boolean {
  for (const [, imported, required] of text.matchAll(specifier)) {
    const module = imported ?? required ?? '';
    if (isLibrary({ module }) || isGeneratedImport(module, path)) return true;
  }
  return false;
}
