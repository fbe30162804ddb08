/**
 * From file names to a linked schema: finds and reads the .proto files, those asked for and all that they import, each once. Collects what goes
 * wrong instead of stopping at the first error. Called by generate().
 */
import { existsSync, readFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { type Diagnostic, Reporter } from './diagnostic.ts';
import { Linker } from './link/link.ts';
import { Schema, type SchemaFile } from './link/schema.ts';
import {
  bundledDirectory,
  deepestDirectory,
  descriptorPath,
  display,
  findImport,
  inside,
  isInRuntime,
} from './source/files.ts';
import { parseFile } from './source/parse.ts';
import type { ParsedFile } from './source/parsed.ts';

export interface Loaded {
  readonly schema: Schema;
  /** Import paths of the files to generate: those asked for and what they import. */
  readonly paths: readonly string[];
  /** Import paths of those asked for alone. */
  readonly named: readonly string[];
  /** Everything that was read, absolute: what a watcher has to look at. */
  readonly files: readonly string[];
  readonly diagnostics: Diagnostic[];
}

class Loader {
  private readonly directories: readonly string[];
  private readonly runtimeApart: boolean;
  private readonly met = new Set<string>();
  private readonly asked = new Set<string>();
  private readonly parsed = new Map<string, { file: SchemaFile; parsed: ParsedFile }>();
  readonly diagnostics: Diagnostic[] = [];
  readonly files: string[] = [];

  constructor(directories: readonly string[], runtimeApart: boolean) {
    this.directories = directories;
    this.runtimeApart = runtimeApart;
  }

  /** About a file as a whole. */
  private complain(file: string, message: string): void {
    this.diagnostics.push({ severity: 'error', file: display(file), line: 0, column: 0, text: '', message });
  }

  /** A file that the user has named. */
  named(file: string): void {
    const directory = this.directories.find((candidate) => inside(candidate, file));
    if (!existsSync(file) || directory === undefined) {
      const where = this.directories.map(display).join(', ');
      this.complain(
        file,
        existsSync(file) ? `lies in none of the include directories (${where})` : 'no such file',
      );
      return;
    }
    const path = relative(directory, file).split(sep).join('/');
    this.asked.add(path);
    if (!(this.runtimeApart && isInRuntime(path)) && !this.met.has(path)) this.load(path, file, []);
  }

  load(path: string, file: string, chain: readonly string[]): void {
    this.met.add(path);
    this.files.push(file);
    let text: string;
    try {
      text = readFileSync(file, 'utf8');
    } catch (error) {
      this.complain(file, `cannot be read: ${(error as Error).message}`);
      return;
    }
    const reporter = new Reporter(display(file), text, this.diagnostics);
    const parsed = parseFile(path, text, reporter);
    for (const entry of parsed.imports) this.follow(reporter, entry, [...chain, path]);
    // After its imports: every file comes after what it needs. A file whose imports are not all there would only add complaints
    // about types that are not its fault.
    if (parsed.broken || !parsed.imports.every((entry) => this.parsed.has(entry.path))) return;
    const { descriptor, locations } = parsed;
    this.parsed.set(path, { file: { path, descriptor, locations, reporter }, parsed });
  }

  private follow(
    reporter: Reporter,
    { path, token }: ParsedFile['imports'][number],
    chain: readonly string[],
  ): void {
    if (chain.includes(path))
      reporter.report(token, `files import each other in a circle: ${[...chain, path].join(' → ')}`);
    if (this.met.has(path)) return;
    const found = findImport(path, this.directories, this.runtimeApart);
    if (found !== undefined) {
      this.load(path, found, chain);
      return;
    }
    const where = this.directories.map((directory) => display(directory) || '.').join(', ');
    reporter.report(
      token,
      `import ${token.text} was not found in ${where}; name its include directory with -I`,
    );
  }

  link(): Loaded {
    // Options are declared there, whether anybody imports it or not; who imports it seldom wants it generated.
    const asked = [...this.parsed.keys()].filter((path) => path !== descriptorPath || this.asked.has(path));
    if (!this.met.has(descriptorPath))
      this.load(descriptorPath, join(bundledDirectory(), descriptorPath), []);
    const schema = new Schema();
    const linker = new Linker(schema);
    for (const { file } of this.parsed.values()) schema.add(file);
    for (const { file, parsed } of this.parsed.values()) linker.resolve(file, parsed);
    linker.finish();
    return { schema, paths: asked, named: [...this.asked], files: this.files, diagnostics: this.diagnostics };
  }
}

/** `runtimeApart`: well-known types are taken from the runtime, whatever copies of their .proto files lie about. */
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
