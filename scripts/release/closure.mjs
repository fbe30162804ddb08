/**
 * Finds the files of dist/bundle that a package needs: its entry points, and the files that they import from
 * each other. packages.mjs uses this file.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** Matches `from "./part.js"`, `import "./part.js"` and `import("./part.js")`. */
const RELATIVE = /(?:from|import)\s*\(?\s*["'](\.{1,2}\/[^"']+)["']/g;

/** Returns the files that a module imports by relative paths, from the root of its package. */
export function importsOf(folder, file) {
  const text = readFileSync(join(folder, file), 'utf8');
  return [...text.matchAll(RELATIVE)].map(([, path]) => normalize(join(dirname(file), path)));
}

/** Returns the entries and all modules that they import, as paths from `folder`. */
export function filesBehind(folder, entries) {
  const found = new Set();
  const look = (file) => {
    if (found.has(file) || !existsSync(join(folder, file))) return;
    found.add(file);
    importsOf(folder, file).forEach(look);
  };
  entries.forEach(look);
  return [...found];
}

/** Returns all files under a folder, as paths from `root`. */
export function filesUnder(root, folder) {
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      normalize(join(entry.parentPath ?? entry.path, entry.name))
        .slice(root.length)
        .replace(/^\//, ''),
    );
}
