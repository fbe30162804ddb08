/**
 * The names that the files of `rdma-rpc gen` export, and the search for the counterpart of a name of another
 * generator. `rdma-rpc migrate` uses this file.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';

/** Limit of nested folders that are searched for generated files. */
const depthMax = 32;

/** A name that a `.rdma.ts` exports. */
export interface Exported {
  /** Absolute path without extension, such as `/app/gen/greeter.rdma`. */
  readonly file: string;
  readonly name: string;
  /** Whether the name exists only as a type. */
  readonly typeOnly: boolean;
  /** Names of an enum's values. Undefined for everything else. */
  readonly values?: readonly string[];
  /** Whether the name is the definition of a service. */
  readonly isService: boolean;
}

const declaration = /^export (?:declare )?(const|interface|type|class|function|enum) ([\w$]+)/gm;
/** Matches an object of constants, as TypeScript or as a declaration, up to the end of its braces. */
const constants = /^export (?:declare )?const ([\w$]+)(?: =|:) \{\n([\s\S]*?)^\}/gm;
const constant = /^ {2}(?:readonly )?([\w$]+): -?\d+[,;]$/gm;
const service = /^export (?:declare )?const ([\w$]+): \1\b/gm;

export class Generated {
  readonly #exports = new Map<string, Exported[]>();
  readonly folder: string;

  /** Reads an output folder of `rdma-rpc gen`. Throws when it cannot be read. */
  constructor(folder: string) {
    this.folder = folder;
    for (const path of filesIn(folder, 0)) {
      const file = path.replace(/(\.d)?\.ts$/, '');
      const text = readFileSync(path, 'utf8');
      const names = new Map<string, boolean>();
      for (const [, kind, name] of text.matchAll(declaration)) {
        const typeOnly = kind === 'interface' || kind === 'type';
        names.set(name!, typeOnly && names.get(name!) !== false);
      }
      const services = new Set([...text.matchAll(service)].map(([, name]) => name!));
      const enums = enumsIn(text, names);
      for (const [name, typeOnly] of names) {
        const values = enums.get(name);
        const found = { file, name, typeOnly, isService: services.has(name), ...(values && { values }) };
        this.#exports.set(name, [...(this.#exports.get(name) ?? []), found]);
      }
    }
  }

  get size(): number {
    return this.#exports.size;
  }

  /**
   * Returns the export with this name. When several files export it, the file is chosen whose path is most
   * similar to that of the replaced module (`module`, an absolute path if known). Returns undefined when no
   * file exports the name, or when two paths are equally similar.
   */
  find(name: string, module: string): Exported | undefined {
    const all = this.#exports.get(name) ?? [];
    if (all.length < 2) return all[0];
    const wanted = segments(module);
    const ranked = all.map((each) => ({
      each,
      like: alike(wanted, segments(relative(this.folder, each.file).split(sep).join('/'))),
    }));
    const best = Math.max(...ranked.map(({ like }) => like));
    const found = ranked.filter(({ like }) => like === best);
    return best > 0 && found.length === 1 ? found[0]!.each : undefined;
  }
}

/** Returns the names of the values of each enum. A table of names by number accompanies each enum. */
function enumsIn(text: string, names: ReadonlyMap<string, boolean>): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const [, name, body] of text.matchAll(constants))
    if (names.has(`${name}Names`))
      found.set(
        name!,
        [...body!.matchAll(constant)].map(([, value]) => value!),
      );
  return found;
}

/**
 * Returns the value that another generator calls `name`: the same name, or the name without the prefix that
 * all values share.
 */
export function valueNamed(values: readonly string[], name: string): string | undefined {
  if (values.includes(name)) return name;
  return values.find((value) => {
    const prefix = value.slice(0, -name.length);
    return prefix.endsWith('_') && value.endsWith(name) && values.every((each) => each.startsWith(prefix));
  });
}

function filesIn(folder: string, depth: number): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory())
      return depth < depthMax && entry.name !== 'node_modules' ? filesIn(path, depth + 1) : [];
    return /\.rdma(\.d)?\.ts$/.test(entry.name) ? [path] : [];
  });
}

/** Splits a path: `./gen/shop/v1/greeter_pb.js` becomes gen, shop, v1, greeter. */
function segments(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '.' && part !== '..');
  const last = basename(parts.pop() ?? '').replace(/\.(js|ts|mjs|mts)$/, '');
  return [...parts, last.replace(/\.rdma$/, '').replace(/_(grpc_pb|pb|connect|connectweb)(\.d)?$/, '')];
}

/**
 * Returns the length of the longest common subsequence of two paths, plus a bonus when the last segments
 * match.
 */
function alike(a: readonly string[], b: readonly string[]): number {
  let row = new Array<number>(b.length + 1).fill(0);
  for (const segment of a) {
    const next = [0];
    for (const [index, other] of b.entries())
      next.push(segment === other ? row[index]! + 1 : Math.max(row[index + 1]!, next[index]!));
    row = next;
  }
  return row.at(-1)! + (a.at(-1) === b.at(-1) ? b.length : 0);
}

/** Returns the possible names, in this package's generated code, for `name` of another generator. */
export function namesFor(name: string): readonly string[] {
  const found = [name];
  const ends: readonly [RegExp, string][] = [
    [/Schema$/, ''],
    [/ServiceImplementation$/, 'Handlers'],
    [/ServiceService$/, 'ServiceDefinition'],
    [/Service$/, 'Definition'],
    [/ServiceServer$/, 'ServiceHandlers'],
    [/Server$/, 'Handlers'],
    [/$/, 'Definition'],
  ];
  for (const [end, instead] of ends)
    if (end.test(name)) found.push(name.replace(end, instead).replace(/^I(?=[A-Z]\w*Handlers$)/, ''));
  return found;
}
