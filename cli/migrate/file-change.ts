/**
 * The state of one file's migration: its imports of other libraries, the edits, the findings left for a
 * person, and the new imports. migrate-file.ts creates this object, and the rules of each library
 * (nice-grpc.ts and others) change it.
 */
import { type Identifier, Node, type SourceFile } from 'ts-morph';
import { type Edit, Edits } from './edits.ts';
import type { Left } from './left.ts';
import { type Imported, identifiersIn, importedNames, type Reference, referencesIn } from './references.ts';

/**
 * A part of a file. When one item of a group cannot be converted, no item of the group is converted, because
 * the items depend on each other.
 */
export type Group = 'client' | 'server' | 'errors' | 'metadata' | 'messages';

/** A name that the file will import. */
interface Wanted {
  readonly local: string;
  value: boolean;
}

export class FileChange {
  readonly source: SourceFile;
  readonly edits: Edits;
  readonly imports: readonly Imported[];
  readonly references: readonly Reference[];
  readonly left: Left[] = [];
  /**
   * Groups that must stay as they are. The set is empty at first. After a first attempt has blocked a group,
   * it has all groups.
   */
  readonly blocked: ReadonlySet<Group>;
  readonly newlyBlocked = new Set<Group>();
  readonly #converted = new Set<Node>();
  readonly #wanted = new Map<string, Map<string, Wanted>>();
  readonly #declared: ReadonlySet<string>;

  /** `first` are edits that an earlier attempt made too late (see Edits). */
  constructor(source: SourceFile, blocked: ReadonlySet<Group>, first: readonly Edit[]) {
    this.source = source;
    this.blocked = blocked;
    this.edits = new Edits(source.getFullText(), first);
    this.imports = importedNames(source);
    this.references = referencesIn(source, this.imports);
    const replaced = new Set<Node>(this.imports.map(({ node }) => node));
    this.#declared = new Set(
      identifiersIn(source)
        .filter((name) => isDeclared(name) && !replaced.has(name))
        .map((name) => name.getText()),
    );
  }

  /** Returns whether the group may be converted. */
  allows(group: Group): boolean {
    return !this.blocked.has(group);
  }

  /** Adds an import of `name` from `module`, and returns its local name. */
  use(module: string, name: string, kind: 'value' | 'type' = 'value'): string {
    const names = this.#wanted.get(module) ?? new Map<string, Wanted>();
    this.#wanted.set(module, names);
    let wanted = names.get(name);
    if (wanted === undefined) {
      const taken = this.#declared.has(name);
      wanted = { local: taken ? `rdma${name[0]!.toUpperCase()}${name.slice(1)}` : name, value: false };
      names.set(name, wanted);
    }
    if (kind === 'value') wanted.value = true;
    return wanted.local;
  }

  /** Marks a reference as converted. An import is removed when all its references are converted. */
  convert(reference: Reference, text?: string): void {
    this.#converted.add(reference.node);
    if (text !== undefined && text !== reference.node.getText())
      this.edits.replace(reference.node.getStart(), reference.node.getEnd(), text);
  }

  isConverted(reference: Reference): boolean {
    return this.#converted.has(reference.node);
  }

  /** Records that a person must change `node`. */
  leave(node: Node, text: string, page: string): void {
    const line = node.getStartLineNumber();
    if (!this.left.some((each) => each.line === line && each.text === text))
      this.left.push({ line, text, page });
  }

  /**
   * Records the finding as `leave` does, and blocks the group. The file is then processed again without all
   * groups.
   */
  block(group: Group, node: Node, text: string, page: string): void {
    this.newlyBlocked.add(group);
    this.leave(node, text, page);
  }

  /** Blocks the group. Records the reason only when that line has no other finding. */
  blockWith(group: Group, node: Node, text: string, page: string): void {
    if (this.left.some(({ line }) => line === node.getStartLineNumber())) this.newlyBlocked.add(group);
    else this.block(group, node, text, page);
  }

  replaceNode(node: Node, text: string): void {
    this.edits.replace(node.getStart(), node.getEnd(), text);
  }

  /** Removes a statement, and its whole line when the line contains nothing else. */
  removeStatement(statement: Node): void {
    const text = this.source.getFullText();
    const start = text.lastIndexOf('\n', statement.getStart() - 1) + 1;
    const alone = text.slice(start, statement.getStart()).trim() === '';
    const end = lineEnd(text, statement.getEnd());
    if (alone && end > statement.getEnd()) this.edits.replace(start, end, '');
    else this.edits.replace(statement.getStart(), statement.getEnd(), '');
  }

  render(node: Node): string {
    return this.edits.render(node.getStart(), node.getEnd());
  }

  /**
   * Removes imports that are no longer used, and puts the new imports in the place of the first removed
   * import.
   */
  finishImports(isOurs: (imported: Imported) => boolean): void {
    const gone = this.imports.filter((each) => {
      const uses = this.references.filter(({ imported }) => imported.node === each.node);
      if (uses.length === 0) return this.allows('client') && isOurs(each);
      return uses.every(({ node }) => this.#converted.has(node));
    });
    const lines = this.#importLines();
    if (lines.length === 0 && gone.length === 0) return;
    let place: number | undefined;
    const declarations = this.source.getImportDeclarations();
    const quote = declarations[0]?.getModuleSpecifier().getText()[0] ?? "'";
    const text = lines.join('\n').replaceAll("'", quote);
    for (const declaration of declarations) {
      const mine = this.imports.filter((each) => each.declaration === declaration);
      const kept = mine.filter((each) => !gone.includes(each));
      if (mine.length === 0 || kept.length === mine.length) continue;
      const start = declaration.getStart();
      const first = place === undefined;
      place ??= start;
      const rest =
        kept.length === 0
          ? ''
          : importText(kept, declaration.getModuleSpecifier().getText(), declaration.isTypeOnly());
      const semicolon = declaration.getText().endsWith(';') ? ';' : '';
      const both = [rest === '' ? '' : rest + semicolon, first ? text : '']
        .filter((each) => each !== '')
        .join('\n');
      const end =
        both === '' ? lineEnd(this.source.getFullText(), declaration.getEnd()) : declaration.getEnd();
      this.edits.replace(start, end, both);
    }
    if (place === undefined && text !== '') {
      const last = declarations.at(-1);
      if (last === undefined) this.edits.insert(this.source.getStart(), `${text}\n`);
      else this.edits.insert(last.getEnd(), `\n${text}`);
    }
  }

  #importLines(): string[] {
    // A rule may have asked for a name in text that another rule has removed.
    const used = new Set(this.edits.render().match(/[\p{ID_Continue}$]+/gu));
    return [...this.#wanted]
      .map(
        ([module, names]) =>
          [module, new Map([...names].filter(([, { local }]) => used.has(local)))] as const,
      )
      .filter(([, names]) => names.size > 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([module, names]) => {
        const typeOnly = [...names.values()].every(({ value }) => !value);
        const list = [...names]
          .sort(([a], [b]) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1))
          .map(([name, { local, value }]) => {
            const renamed = local === name ? name : `${name} as ${local}`;
            return value || typeOnly ? renamed : `type ${renamed}`;
          });
        return importOf(typeOnly, list, module);
      });
  }
}

const columns = 100;

function importOf(typeOnly: boolean, list: readonly string[], module: string): string {
  const word = typeOnly ? 'import type' : 'import';
  const line = `${word} { ${list.join(', ')} } from '${module}';`;
  return line.length <= columns || list.length === 1
    ? line
    : `${word} {\n  ${list.join(',\n  ')},\n} from '${module}';`;
}

function importText(kept: readonly Imported[], module: string, typeOnly: boolean): string {
  const whole = kept
    .filter(({ kind }) => kind !== 'named')
    .map((each) => (each.kind === 'namespace' ? `* as ${each.local}` : each.local));
  const named = kept
    .filter(({ kind }) => kind === 'named')
    .map(({ node }) => node.getParentOrThrow().getText());
  const list = named.length === 0 ? [] : [`{ ${named.join(', ')} }`];
  return `import ${typeOnly ? 'type ' : ''}${[...whole, ...list].join(', ')} from ${module}`;
}

/** Returns the position after the line break that follows `at`, or `at` when other text follows. */
function lineEnd(text: string, at: number): number {
  const next = /[ \t]*\r?\n/y;
  next.lastIndex = at;
  return at + (next.exec(text)?.[0].length ?? 0);
}

/**
 * Returns whether the identifier declares a name in a scope. Members of objects do not declare such names.
 */
function isDeclared(name: Identifier): boolean {
  const parent = name.getParent();
  if (Node.isImportSpecifier(parent)) return (parent.getAliasNode() ?? parent.getNameNode()) === name;
  if (Node.isImportClause(parent) || Node.isNamespaceImport(parent)) return true;
  if (
    Node.isBindingElement(parent) ||
    Node.isParameterDeclaration(parent) ||
    Node.isVariableDeclaration(parent)
  )
    return parent.getNameNode() === name;
  return (
    (Node.isFunctionDeclaration(parent) ||
      Node.isClassDeclaration(parent) ||
      Node.isInterfaceDeclaration(parent) ||
      Node.isTypeAliasDeclaration(parent) ||
      Node.isEnumDeclaration(parent)) &&
    parent.getNameNode() === name
  );
}
