/**
 * Names of generated code: what the files of `rdma-rpc gen` export, and which of these names stands for one
 * of another generator. Used by `rdma-rpc migrate`.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, relative, sep } from 'node:path';

/** The folders of generated files are not deeper than this. */
const depthMax = 32;

/** A name that a `.rdma.ts` exports. */
export interface Exported {
  /** Absolute, without its extension: `/app/gen/greeter.rdma`. */
  readonly file: string;
  readonly name: string;
  /** It has no value. */
  readonly typeOnly: boolean;
}

const declaration = /^export (?:declare )?(const|interface|type|class|function|enum) ([\w$]+)/gm;

export class Generated {
  readonly #exports = new Map<string, Exported[]>();
  readonly folder: string;

  /** Reads the folder, which `rdma-rpc gen` has made. Throws when it cannot be read. */
  constructor(folder: string) {
    this.folder = folder;
    for (const path of filesIn(folder, 0)) {
      const file = path.replace(/(\.d)?\.ts$/, '');
      const names = new Map<string, boolean>();
      for (const [, kind, name] of readFileSync(path, 'utf8').matchAll(declaration)) {
        const typeOnly = kind === 'interface' || kind === 'type';
        names.set(name!, typeOnly && names.get(name!) !== false);
      }
      for (const [name, typeOnly] of names)
        this.#exports.set(name, [...(this.#exports.get(name) ?? []), { file, name, typeOnly }]);
    }
  }

  get size(): number {
    return this.#exports.size;
  }

  /**
   * The export of that name. Of several files, the one whose path is most like that of the module which is
   * replaced, which is absolute where that is known. Undefined when there is none, or no one that is more
   * like it than the others.
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

function filesIn(folder: string, depth: number): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory())
      return depth < depthMax && entry.name !== 'node_modules' ? filesIn(path, depth + 1) : [];
    return /\.rdma(\.d)?\.ts$/.test(entry.name) ? [path] : [];
  });
}

/** `./gen/shop/v1/greeter_pb.js`: gen, shop, v1, greeter. */
function segments(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '.' && part !== '..');
  const last = basename(parts.pop() ?? '').replace(/\.(js|ts|mjs|mts)$/, '');
  return [...parts, last.replace(/\.rdma$/, '').replace(/_(grpc_pb|pb|connect|connectweb)(\.d)?$/, '')];
}

/** The length of the longest list of segments that both have in this order. The last one counts most. */
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

/** Names under which the generated code of this package may have what another generator calls `name`. */
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
