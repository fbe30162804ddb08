/**
 * Loads files into a linked schema. It finds and reads the requested .proto files and all their imports, each
 * of them once. It collects all errors instead of stopping at the first. generate() calls it.
 */
import { existsSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { type Diagnostic, Reporter } from './diagnostic.ts';
import { checkDescriptor } from './link/check-descriptor.ts';
import { Linker } from './link/link.ts';
import { addExtensions } from './link/linked.ts';
import { Schema, type SchemaFile } from './link/schema.ts';
import { sortOptions } from './options/sort.ts';
import {
  bundledDirectory,
  deepestDirectory,
  descriptorPath,
  display,
  findImport,
  inside,
  isFile,
  isInRuntime,
  isSameFile,
  readInput,
} from './source/files.ts';
import { packagedFile, packageWith } from './source/packaged.ts';
import { parseFile } from './source/parse.ts';
import type { ParsedFile } from './source/parsed.ts';

export interface Loaded {
  readonly schema: Schema;
  /** Import paths of the files to generate: the requested files and their imports. */
  readonly paths: readonly string[];
  /** Import paths of the requested files alone. */
  readonly named: readonly string[];
  /** The include directories, as absolute paths. */
  readonly directories: readonly string[];
  /** Absolute paths of all files that were read, for a watcher. */
  readonly files: readonly string[];
  readonly diagnostics: Diagnostic[];
}

/** A file that has been read, but whose imports have not all been read. */
interface Open {
  readonly path: string;
  readonly parsed: ParsedFile;
  readonly reporter: Reporter;
  /** Index of the next import to read. */
  next: number;
  /** The file that imports this file. */
  readonly before: Open | undefined;
}

class Loader {
  readonly #directories: readonly string[];
  readonly #runtimeApart: boolean;
  readonly #met = new Set<string>();
  readonly #asked = new Set<string>();
  /** Files that could not be read, or that contain syntax errors. */
  readonly #lost = new Set<string>();
  /** The loaded files, by path. `parsed` is absent for a file that came as a descriptor. */
  readonly #parsed = new Map<string, { file: SchemaFile; parsed: ParsedFile | undefined }>();
  readonly diagnostics: Diagnostic[] = [];
  readonly files: string[] = [];

  constructor(directories: readonly string[], runtimeApart: boolean) {
    this.#directories = directories;
    this.#runtimeApart = runtimeApart;
  }

  /** Reports an error about a whole file. */
  #complain(file: string, message: string): void {
    this.diagnostics.push({ severity: 'error', file: display(file), line: 0, column: 0, text: '', message });
  }

  /** Loads a file that the user has named. */
  named(file: string): void {
    const directory = this.#directories.find((candidate) => inside(candidate, file));
    if (!existsSync(file) || directory === undefined) {
      const where = this.#directories.map(display).join(', ');
      this.#complain(
        file,
        existsSync(file) ? `lies in none of the include directories (${where})` : 'no such file',
      );
      return;
    }
    const path = relative(directory, file).split(sep).join('/');
    const first = this.#directories.map((each) => join(each, path)).find(isFile) ?? file;
    // An import of this path finds the other file first, so the output of the named file would never be used.
    if (!isSameFile(first, file)) {
      this.#complain(
        file,
        `is shadowed by ${display(first)}, which is ${path} in an earlier include directory: name that file, or its own include directory first`,
      );
      return;
    }
    this.#asked.add(path);
    if (!(this.#runtimeApart && isInRuntime(path)) && !this.#met.has(path)) this.load(path, file);
  }

  /**
   * Loads a file with all its imports. It uses a list of open files instead of recursion, because chains of
   * imports may be longer than the stack is deep. The list `open` also detects files that import each other.
   */
  load(path: string, file: string): void {
    const open = new Map<string, Open>();
    const begin = (path: string, file: string, before: Open | undefined): Open | undefined => {
      const reading = this.#read(path, file);
      if (reading === undefined) return before;
      const inner = { path, ...reading, next: 0, before };
      open.set(path, inner);
      return inner;
    };
    for (let last = begin(path, file, undefined); last !== undefined; ) {
      const entry = last.parsed.imports[last.next++];
      if (entry === undefined) {
        this.#close(last);
        open.delete(last.path);
        last = last.before;
        continue;
      }
      const found = this.#follow(last.reporter, entry, open);
      if (found !== undefined) last = begin(entry.path, found, last);
    }
  }

  #read(path: string, file: string): Pick<Open, 'parsed' | 'reporter'> | undefined {
    this.#met.add(path);
    this.files.push(file);
    let text: string;
    try {
      const bytes = readInput(file);
      if (isUtf16(bytes)) throw new Error('it is UTF-16 text: save it as UTF-8');
      text = bytes.toString('utf8');
    } catch (error) {
      this.#complain(file, `cannot be read: ${(error as Error).message}`);
      this.#lost.add(path);
      return undefined;
    }
    const reporter = new Reporter(display(file), text, this.diagnostics);
    return { parsed: parseFile(path, text, reporter), reporter };
  }

  /**
   * Adds a file after its imports, so that every file follows the files that it needs. A file with a syntax
   * error is incomplete and is omitted. Files that import it are linked nevertheless, and the schema does not
   * report names that it may declare.
   */
  #close({ path, parsed, reporter }: Open): void {
    if (parsed.broken) {
      this.#lost.add(path);
      return;
    }
    const { descriptor, locations } = parsed;
    const file = { path, descriptor, locations, reporter, standsIn: this.#lost.has(path) };
    this.#parsed.set(path, { file, parsed });
  }

  /** Returns the position of an import that has not been loaded yet, or undefined for all other imports. */
  #follow(
    reporter: Reporter,
    { path, token }: ParsedFile['imports'][number],
    open: ReadonlyMap<string, Open>,
  ): string | undefined {
    if (open.has(path))
      reporter.report(token, `files import each other in a circle: ${[...open.keys(), path].join(' → ')}`);
    if (this.#met.has(path)) return undefined;
    const found = findImport(path, this.#directories, this.#runtimeApart);
    if (found !== undefined) return found;
    if (this.#loadPackaged(path)) return undefined;
    const where = this.#directories.map((directory) => display(directory) || '.').join(', ');
    const package_ = packageWith(path);
    const also = package_ === undefined ? '' : `, or install ${package_}, which has it`;
    reporter.report(
      token,
      `import ${token.text} was not found in ${where}; name its include directory with -I${also}`,
    );
    return undefined;
  }

  /**
   * Loads a file that an npm package contains as a descriptor, and its imports. Returns false when no package
   * contains the file.
   */
  #loadPackaged(path: string): boolean {
    const descriptor = packagedFile(path, this.#directories);
    if (descriptor === undefined) return false;
    this.#met.add(path);
    for (const each of descriptor.dependency)
      if (!this.#met.has(each)) this.load(each, join(bundledDirectory(), each));
    const reporter = new Reporter(path, '', this.diagnostics);
    this.#parsed.set(path, { file: { path, descriptor, locations: new Map(), reporter }, parsed: undefined });
    return true;
  }

  link(): Loaded {
    // Options are declared in descriptor.proto, whether it is imported or not. Files that import it rarely
    // need its output. Our copy replaces a broken copy.
    const asked = [...this.#parsed.keys()].filter((path) => path !== descriptorPath || this.#asked.has(path));
    if (!this.#parsed.has(descriptorPath))
      this.load(descriptorPath, join(bundledDirectory(), descriptorPath));
    const schema = new Schema();
    const linker = new Linker(schema);
    for (const { file } of this.#parsed.values()) schema.add(file);
    for (const { file, parsed } of this.#parsed.values()) {
      if (parsed === undefined) addExtensions(schema, file);
      else linker.resolve(file, parsed);
    }
    linker.finish();
    for (const { file, parsed } of this.#parsed.values())
      if (parsed === undefined) {
        checkDescriptor(schema, file);
        sortOptions(schema, file.descriptor);
      }
    const directories = this.#directories;
    const { files, diagnostics } = this;
    return { schema, paths: asked, named: [...this.#asked], directories, files, diagnostics };
  }
}

/** Looks for the byte order mark, or for the zeros beside ASCII letters when the mark is missing. */
function isUtf16(bytes: Uint8Array): boolean {
  const [first, second] = bytes;
  return (
    (first === 0xff && second === 0xfe) ||
    (first === 0xfe && second === 0xff) ||
    (bytes.length > 1 && (first === 0) !== (second === 0))
  );
}

/**
 * With `runtimeApart`, well-known types are taken from the runtime, even if copies of their .proto files are
 * found.
 */
export function loadFiles(
  files: readonly string[],
  include: readonly string[],
  runtimeApart: boolean,
): Loaded {
  const absolute = files.map((file) => resolve(file));
  const directories =
    include.length > 0 ? include.map((directory) => resolve(directory)) : [deepestDirectory(absolute)];
  const loader = new Loader(directories, runtimeApart);
  for (const file of absolute) loader.named(file);
  return loader.link();
}
