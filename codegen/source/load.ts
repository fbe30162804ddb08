/**
 * Finds and reads the .proto files: those asked for and all that they import, each once. Collects what goes wrong instead of stopping at
 * the first error. Called by generate().
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Diagnostic } from '../diagnostic.ts';
import { at, type ProtoSource, parseSource } from './proto-source.ts';

/** Import path of the file with the option types. It is proto2 and made of options only: importing it is allowed, and does nothing. */
export const descriptorPath = 'google/protobuf/descriptor.proto';

export interface Loaded {
  /** By import path, in the order in which they were first met. */
  readonly sources: ReadonlyMap<string, ProtoSource>;
  /** Everything that was read, absolute: what a watcher has to look at. */
  readonly files: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/** The .proto files that come with this package: the well-known types. */
export function bundledDirectory(): string {
  for (let dir = dirname(fileURLToPath(import.meta.url)); ; dir = dirname(dir)) {
    if (existsSync(join(dir, 'package.json'))) return join(dir, 'proto');
    if (dir === dirname(dir)) throw new Error('rdma-rpc: the folder `proto` of the package is missing');
  }
}

/** True for files whose output is part of the package: generated code imports them from it. */
export function isBundled(path: string): boolean {
  return path.startsWith('google/protobuf/') && existsSync(join(bundledDirectory(), path));
}

/** The deepest directory that has all files in it: the include directory when none is given. */
function commonDirectory(files: readonly string[]): string {
  let common = dirname(files[0] ?? resolve('x'));
  for (const file of files) while (!inside(common, file)) common = dirname(common);
  return common;
}

function inside(directory: string, file: string): boolean {
  const path = relative(directory, file);
  return path !== '' && path !== '..' && !path.startsWith(`..${sep}`) && !isAbsolute(path);
}

function display(file: string): string {
  const path = relative(process.cwd(), file);
  return path.startsWith('..') ? file : path;
}

const wholeFile = (file: string, message: string): Diagnostic => ({
  severity: 'error',
  file,
  line: 0,
  column: 0,
  text: '',
  message,
});

export function loadSources(files: readonly string[], include: readonly string[], bundled: boolean): Loaded {
  const absolute = files.map((file) => resolve(file));
  const directories =
    include.length > 0 ? include.map((directory) => resolve(directory)) : [commonDirectory(absolute)];
  const sources = new Map<string, ProtoSource>();
  const read: string[] = [];
  const diagnostics: Diagnostic[] = [];
  const met = new Set<string>();

  const load = (path: string, file: string, chain: readonly string[]): void => {
    met.add(path);
    read.push(file);
    let text: string;
    try {
      text = readFileSync(file, 'utf8');
    } catch (error) {
      diagnostics.push(wholeFile(display(file), `cannot be read: ${(error as Error).message}`));
      return;
    }
    const source = parseSource(path, display(file), text);
    if (!('root' in source)) {
      diagnostics.push(source);
      return;
    }
    for (const { path: token } of source.declarations.imports)
      follow(source, token.text.slice(1, -1), token, [...chain, path]);
    // After its imports: the order of the map is one in which every file comes after what it needs. A file whose imports are
    // not all there would only add complaints about types that are not its fault.
    const missing = source.declarations.imports
      .map((entry) => entry.path.text.slice(1, -1))
      .find((name) => name !== descriptorPath && !sources.has(name));
    if (missing === undefined) sources.set(path, source);
  };

  const follow = (
    from: ProtoSource,
    path: string,
    token: Parameters<typeof at>[1],
    chain: readonly string[],
  ): void => {
    if (path === descriptorPath) return;
    if (chain.includes(path)) {
      diagnostics.push(
        at(from.displayPath, token, `files import each other in a circle: ${[...chain, path].join(' → ')}`),
      );
    }
    if (met.has(path)) return;
    const found = find(path);
    if (found === undefined) {
      const where = directories.map((directory) => display(directory) || '.').join(', ');
      diagnostics.push(
        at(
          from.displayPath,
          token,
          `import ${token.text} was not found in ${where}; name its include directory with -I`,
        ),
      );
    } else load(path, found, chain);
  };

  const find = (path: string): string | undefined => {
    if (bundled && isBundled(path)) return join(bundledDirectory(), path);
    return directories
      .map((directory) => join(directory, path))
      .find((file) => existsSync(file) && statSync(file).isFile());
  };

  for (const file of absolute) {
    const directory = directories.find((candidate) => inside(candidate, file));
    if (!existsSync(file)) diagnostics.push(wholeFile(display(file), 'no such file'));
    else if (directory === undefined) {
      diagnostics.push(
        wholeFile(
          display(file),
          `lies in none of the include directories (${directories.map(display).join(', ')})`,
        ),
      );
    } else {
      const path = relative(directory, file).split(sep).join('/');
      const ours = bundled && isBundled(path);
      if (!ours && !met.has(path)) load(path, file, []);
    }
  }
  return { sources, files: read, diagnostics };
}
