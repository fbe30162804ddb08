/**
 * All files of a run, with every name in them. The linker resolves names here, and the model and the options
 * read it. It is made from parsed files (with unresolved names) or from a plugin request (with resolved
 * names).
 */

import type {
  DescriptorProto,
  EnumDescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
  ServiceDescriptorProto,
} from '../descriptor/descriptor.rdma.ts';
import { isScalarName } from '../descriptor/types.ts';
import { type Place, type Reporter, suggestion } from '../diagnostic.ts';
import type { Location, Locations } from '../source/parsed.ts';

export interface SchemaFile {
  readonly path: string;
  readonly descriptor: FileDescriptorProto;
  readonly locations: Locations;
  readonly reporter: Reporter;
  /** True for a file that replaces a file that could not be read. It may lack declarations of that file. */
  readonly standsIn?: boolean;
}

/** The files whose names a file may use. */
interface Visible {
  readonly files: ReadonlySet<SchemaFile>;
  /**
   * The files whose types may be used, which are all files except those that are imported only for options.
   */
  readonly types: ReadonlySet<SchemaFile>;
  /** Whether one of the files could not be read. A missing name may be declared in that file. */
  readonly incomplete: boolean;
}

/** A name with its `descriptor` and the path at which it is declared in the file. */
export type Declared = { readonly file: SchemaFile; readonly path: string; readonly fullName: string } & (
  | { readonly kind: 'message'; readonly descriptor: DescriptorProto }
  | { readonly kind: 'enum'; readonly descriptor: EnumDescriptorProto }
  | { readonly kind: 'service'; readonly descriptor: ServiceDescriptorProto }
  | { readonly kind: 'extension'; readonly descriptor: FieldDescriptorProto }
  | { readonly kind: 'field' | 'oneof' | 'value' | 'method' | 'package' }
);

export type DeclaredKind<K extends Declared['kind']> = Extract<Declared, { readonly kind: K }>;

const nowhere: Place = { text: '', line: 0, column: 0 };

export function join(scope: string, name: string | undefined): string {
  return scope === '' ? (name ?? '') : `${scope}.${name}`;
}

/** Returns the position of an element, or of its part with field number `part`. */
export function placeOf(file: SchemaFile, path: string, part?: number): Place {
  const { locations } = file;
  const location: Location | undefined =
    (part === undefined ? undefined : locations.get(`${path},${part}`)) ??
    locations.get(`${path},1`) ??
    locations.get(path);
  return location?.token ?? nowhere;
}

export class Schema {
  /** The files by import path. An imported file comes before the files that import it. */
  readonly files = new Map<string, SchemaFile>();
  readonly #names = new Map<string, Declared>();
  readonly #visible = new Map<SchemaFile, Visible>();
  /** Extensions by the full name of the extended message, once that name is resolved. */
  readonly extensions = new Map<string, DeclaredKind<'extension'>[]>();

  /** Adds a file and all names in it. Reports names that are already taken. */
  add(file: SchemaFile): void {
    this.files.set(file.path, file);
    const { descriptor } = file;
    const { package: name = '' } = descriptor;
    const parts = name.split('.');
    if (name !== '') for (let i = 1; i <= parts.length; i++) this.#package(file, parts.slice(0, i).join('.'));
    const inside = { file, scope: name };
    descriptor.messageType.forEach((each, i) => {
      this.#message(inside, each, `4,${i}`);
    });
    descriptor.enumType.forEach((each, i) => {
      this.#enum(inside, each, `5,${i}`);
    });
    descriptor.extension.forEach((each, i) => {
      this.#declare({
        kind: 'extension',
        descriptor: each,
        file,
        path: `7,${i}`,
        fullName: join(name, each.name),
      });
    });
    descriptor.service.forEach((each, i) => {
      const fullName = join(name, each.name);
      this.#declare({ kind: 'service', descriptor: each, file, path: `6,${i}`, fullName });
      each.method.forEach((method, j) => {
        this.#declare({ kind: 'method', file, path: `6,${i},2,${j}`, fullName: join(fullName, method.name) });
      });
    });
  }

  #package(file: SchemaFile, fullName: string): void {
    const other = this.#names.get(fullName);
    if (other === undefined) this.#names.set(fullName, { kind: 'package', file, path: '', fullName });
    else if (other.kind !== 'package')
      file.reporter.report(
        placeOf(file, '2'),
        `package ${fullName} has the name of a ${other.kind} in ${other.file.path}`,
      );
  }

  #message(
    { file, scope }: { file: SchemaFile; scope: string },
    descriptor: DescriptorProto,
    path: string,
  ): void {
    const fullName = join(scope, descriptor.name);
    this.#declare({ kind: 'message', descriptor, file, path, fullName });
    const inside = { file, scope: fullName };
    descriptor.field.forEach((each, i) => {
      this.#declare({ kind: 'field', file, path: `${path},2,${i}`, fullName: join(fullName, each.name) });
    });
    descriptor.nestedType.forEach((each, i) => {
      this.#message(inside, each, `${path},3,${i}`);
    });
    descriptor.enumType.forEach((each, i) => {
      this.#enum(inside, each, `${path},4,${i}`);
    });
    descriptor.extension.forEach((each, i) => {
      this.#declare({
        kind: 'extension',
        descriptor: each,
        file,
        path: `${path},6,${i}`,
        fullName: join(fullName, each.name),
      });
    });
    descriptor.oneofDecl.forEach((each, i) => {
      this.#declare({ kind: 'oneof', file, path: `${path},8,${i}`, fullName: join(fullName, each.name) });
    });
  }

  #enum(
    { file, scope }: { file: SchemaFile; scope: string },
    descriptor: EnumDescriptorProto,
    path: string,
  ): void {
    this.#declare({ kind: 'enum', descriptor, file, path, fullName: join(scope, descriptor.name) });
    // The values of an enum have the enum's scope, as in C++.
    descriptor.value.forEach((each, i) => {
      this.#declare({ kind: 'value', file, path: `${path},2,${i}`, fullName: join(scope, each.name) });
    });
  }

  #declare(declared: Declared): void {
    const { file, fullName, path } = declared;
    const other = this.#names.get(fullName);
    if (other === undefined) this.#names.set(fullName, declared);
    else {
      const where =
        other.kind === 'package'
          ? 'is a package too'
          : other.file === file
            ? `is declared twice in this file`
            : `is declared in ${other.file.path} too`;
      const entry = [declared, other].some(isMapEntry);
      // The name of a map's entry type does not appear in the file.
      const subject = entry ? `a map needs the name ${fullName} for its entries, which` : fullName;
      file.reporter.report(
        placeOf(file, path),
        `${subject} ${where}${entry ? ': rename the field' : ''}${other.kind === 'value' || declared.kind === 'value' ? '; values of enums share the scope of their enum' : ''}`,
      );
    }
  }

  /** Looks up a full name, with or without a leading dot. */
  get(fullName: string): Declared | undefined {
    return this.#names.get(fullName.startsWith('.') ? fullName.slice(1) : fullName);
  }

  messageOf(fullName: string): DeclaredKind<'message'> | undefined {
    const found = this.get(fullName);
    return found?.kind === 'message' ? found : undefined;
  }

  /**
   * Resolves `name` in the scope `scope` (a full name, or a package) of `file` to one of `kinds`. Returns
   * undefined after a report at `place`. It makes no report when the name may be declared in a file that
   * could not be read. `hint` gives advice for a name that is unknown and is similar to no other name.
   */
  resolve<K extends Declared['kind']>(
    file: SchemaFile,
    name: string,
    scope: string,
    kinds: readonly K[],
    place: Place,
    what: string,
    hint = '',
  ): DeclaredKind<K> | undefined {
    let hidden: Declared | undefined;
    let other: Declared | undefined;
    const { files: visible, incomplete } = this.#visibleFrom(file);
    const report = (message: string): void => {
      if (!incomplete) file.reporter.report(place, message);
    };
    const first = name.split('.', 1)[0] ?? '';
    for (const candidate of candidates(name, scope)) {
      // If a scope contains the first part of a name, the whole name must be declared in that scope. The
      // scopes are searched from the inside out, so this is the innermost such scope.
      const found = this.#names.get(candidate);
      if (found === undefined) {
        const start = this.#names.get(candidate.slice(0, candidate.length - name.length + first.length));
        if (candidate === name || first === '' || start === undefined || !isScope(start, visible)) continue;
        report(
          `${name} means ${candidate} here, which is not declared; .${name} begins at the outermost scope`,
        );
        return undefined;
      }
      if (!(kinds as readonly string[]).includes(found.kind)) {
        other ??= found;
        // A method is ignored, because it may have the same name as its types.
        if (found.kind === 'method') break;
      } else if (visible.has(found.file)) return found as DeclaredKind<K>;
      else hidden ??= found;
    }
    if (hidden !== undefined)
      report(`${what} ${name} is declared in ${hidden.file.path}, which this file does not import`);
    else if (other !== undefined) report(`${name} is ${listed([other.kind])}, not ${listed(kinds)}`);
    else if (isScalarName(name))
      file.reporter.report(place, `${name} is a scalar type, not ${listed(kinds)}: wrap it in a message`);
    else if (!incomplete) report(`unknown ${what} ${name}${this.#suggest(file, name, kinds) || hint}`);
    return undefined;
  }

  #suggest(file: SchemaFile, name: string, kinds: readonly string[]): string {
    const last = name.slice(name.lastIndexOf('.') + 1);
    const names = new Map<string, string>();
    const { files: visible } = this.#visibleFrom(file);
    const prefix = `${file.descriptor.package ?? ''}.`;
    for (const { kind, fullName, file: owner } of this.#names.values()) {
      if (!kinds.includes(kind) || !visible.has(owner)) continue;
      names.set(
        fullName.slice(fullName.lastIndexOf('.') + 1),
        fullName.startsWith(prefix) ? fullName.slice(prefix.length) : fullName,
      );
    }
    const found = /did you mean (.*)\?/.exec(suggestion(last, names.keys()))?.[1];
    return found === undefined ? '' : `; did you mean ${names.get(found)}?`;
  }

  /** Returns whether some imports of `file` could not be read. */
  isIncomplete(file: SchemaFile): boolean {
    return this.#visibleFrom(file).incomplete;
  }

  /** Returns whether `file` imports `other` only for its options. */
  isForOptions(file: SchemaFile, other: SchemaFile): boolean {
    const { files, types } = this.#visibleFrom(file);
    return files.has(other) && !types.has(other);
  }

  #visibleFrom(file: SchemaFile): Visible {
    const known = this.#visible.get(file);
    if (known !== undefined) return known;
    const { dependency, optionDependency } = file.descriptor;
    const types = this.#reached(file, dependency);
    const all =
      optionDependency.length === 0 ? types : this.#reached(file, [...dependency, ...optionDependency]);
    const visible = { files: all.files, types: types.files, incomplete: all.incomplete };
    this.#visible.set(file, visible);
    return visible;
  }

  /** Returns the files with these paths, and their public imports. */
  #reached(file: SchemaFile, own: readonly string[]): { files: Set<SchemaFile>; incomplete: boolean } {
    const files = new Set([file]);
    let incomplete = false;
    // An explicit list is used instead of recursion, because chains of public imports may be longer than the
    // stack is deep.
    for (const paths = [...own]; paths.length > 0; ) {
      const next = this.files.get(paths.pop() ?? '');
      if (next === undefined || next.standsIn === true) incomplete = true;
      if (next === undefined || files.has(next)) continue;
      files.add(next);
      const { dependency, publicDependency } = next.descriptor;
      for (const i of publicDependency) paths.push(dependency[i] ?? '');
    }
    return { files, incomplete };
  }
}

/** Returns a text such as `a message or an enum`. */
const listed = (kinds: readonly string[]): string =>
  kinds.map((kind) => `${/^[aeo]/.test(kind) ? 'an' : 'a'} ${kind}`).join(' or ');

/** Our parser sets MessageOptions.map_entry for the entry type of a map, and sets no other option there. */
function isMapEntry(declared: Declared): boolean {
  return declared.kind === 'message' && declared.descriptor.options?.[0] === 0x38;
}

/** Returns whether names can be looked up inside `declared` when only these files are visible. */
function isScope({ kind, fullName, file }: Declared, visible: ReadonlySet<SchemaFile>): boolean {
  if (kind === 'message' || kind === 'enum' || kind === 'service') return visible.has(file);
  if (kind !== 'package') return false;
  return [...visible].some(({ descriptor: { package: name = '' } }) => `${name}.`.startsWith(`${fullName}.`));
}

function* candidates(name: string, scope: string): Generator<string> {
  if (name.startsWith('.')) {
    yield name.slice(1);
    return;
  }
  for (let outer = scope; outer !== ''; outer = outer.slice(0, Math.max(0, outer.lastIndexOf('.'))))
    yield `${outer}.${name}`;
  yield name;
}
