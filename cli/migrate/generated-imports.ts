/**
 * Converts imports of code from other generators. Each name is replaced by its counterpart in the generated
 * code of this package, where a counterpart exists. migrate-file.ts uses this file.
 */
import { dirname, relative, resolve, sep } from 'node:path';
import { Node, SyntaxKind } from 'ts-morph';
import { convertEnum } from './enums.ts';
import type { FileChange } from './file-change.ts';
import { type Exported, type Generated, namesFor } from './generated.ts';
import { isGeneratedImport } from './generated-modules.ts';
import { generatorPage } from './left.ts';
import type { Imported, Reference } from './references.ts';

/** Finds the counterpart of a reference to generated code. */
export type TargetOf = (
  node: Node | undefined,
) => { readonly found: Exported; readonly reference: Reference } | undefined;

/** The names that a file imports from generated code, with their counterparts. */
export class GeneratedNames {
  readonly #file: FileChange;
  readonly #generated: Generated;
  readonly #targets = new Map<Node, { found: Exported; reference: Reference }>();
  /** Generated modules, each with the extension of its import specifier. */
  readonly #modules = new Map<string, boolean>();

  constructor(file: FileChange, generated: Generated) {
    this.#file = file;
    this.#generated = generated;
    for (const reference of file.references) {
      if (reference.name === '' || !this.isGenerated(reference.imported)) continue;
      const found = namesFor(reference.name)
        .map((name) => generated.find(name, this.#path(reference.module)))
        .find((each) => each !== undefined);
      if (found !== undefined) this.#targets.set(reference.node, { found, reference });
    }
  }

  readonly targetOf: TargetOf = (node) => (node === undefined ? undefined : this.#targets.get(node));

  get references(): readonly Reference[] {
    return this.#file.references.filter(({ imported }) => this.isGenerated(imported));
  }

  /** Returns the local name of an export of the generated code. */
  use({ file, name, typeOnly }: Exported, like: Imported, inType = false): string {
    const kind = typeOnly || inType ? 'type' : 'value';
    return this.#file.use(this.#specifier(file, like.module), name, kind);
  }

  /**
   * Returns the export with this name from the same file as `like`, such as `GreeterDefinition` for the class
   * `GreeterClient`.
   */
  named(name: string, like: Reference): Exported | undefined {
    return this.#generated.find(name, this.#path(like.module));
  }

  /**
   * Converts the references that the library's rules have not converted. Blocks the group of a name without a
   * counterpart.
   */
  convertRest(): void {
    const file = this.#file;
    for (const reference of this.references) {
      if (file.isConverted(reference) || !file.allows('messages')) continue;
      const target = this.targetOf(reference.node);
      if (target === undefined)
        file.block(
          'messages',
          reference.imported.node,
          `${reference.name || reference.imported.local} of ${reference.module} is not in the code that --gen names`,
          generatorPage,
        );
      else this.#convert(reference, target.found);
    }
  }

  #convert(reference: Reference, found: Exported): void {
    const file = this.#file;
    const { node } = reference;
    const parent = node.getParentOrThrow();
    const local = (): string => this.use(found, reference.imported, reference.inType);
    const { values } = found;
    if (values !== undefined) {
      const table = (): string =>
        this.use({ ...found, name: `${found.name}Names` }, reference.imported, reference.inType);
      if (convertEnum(file, reference, { ...found, values }, { values: local, table })) return;
    }
    if (Node.isExportSpecifier(parent) || Node.isShorthandPropertyAssignment(parent)) {
      file.block('messages', node, `${reference.name} is passed on by its name`, generatorPage);
    } else if (Node.isNewExpression(parent) && parent.getExpression() === node) {
      const [init] = parent.getArguments();
      const plain = init !== undefined && Node.isObjectLiteralExpression(init);
      if (!plain || parent.getArguments().length > 1)
        file.blockWith(
          'messages',
          node,
          `new ${reference.name}(): messages are plain objects, without setters`,
          generatorPage,
        );
      else {
        file.convert(reference);
        file.replaceNode(parent, `${local()}.create(${file.render(init)})`);
      }
    } else if (
      Node.isPropertyAccessExpression(parent) &&
      parent.getExpression() === node &&
      !found.typeOnly
    ) {
      if (found.isService) this.#serviceMember(reference, parent.getName(), local);
      else this.#member(reference, parent.getName(), local());
    } else if (reference.inType && isGeneric(parent)) {
      file.block('messages', node, `${reference.name} has type arguments`, generatorPage);
    } else file.convert(reference, local());
  }

  /** Converts a member of a service's descriptor. */
  #serviceMember(reference: Reference, name: string, local: () => string): void {
    const file = this.#file;
    const access = reference.node.getParentIfKindOrThrow(SyntaxKind.PropertyAccessExpression);
    const instead = { typeName: 'fullName', fullName: 'fullName', name: 'name' }[name];
    if (instead === undefined) {
      file.block('messages', access, `${reference.name}.${name} has no counterpart`, generatorPage);
      return;
    }
    file.convert(reference, local());
    if (instead !== name) file.replaceNode(access.getNameNode(), instead);
  }

  /** Converts a static method of a message that ts-proto has generated. */
  #member(reference: Reference, name: string, local: string): void {
    const file = this.#file;
    const access = reference.node.getParentIfKindOrThrow(SyntaxKind.PropertyAccessExpression);
    const call = access.getParent();
    const isCall = Node.isCallExpression(call) && call.getExpression() === access;
    const outer = isCall ? call.getParent() : undefined;
    if (name === 'fromPartial' && isCall) {
      file.convert(reference, local);
      file.replaceNode(access.getNameNode(), 'create');
    } else if (name === 'encode' && Node.isPropertyAccessExpression(outer) && outer.getName() === 'finish') {
      file.convert(reference, local);
      file.replaceNode(outer.getParentOrThrow(), file.render(call!));
    } else if ((name === 'fromJSON' || name === 'toJSON') && isCall) {
      file.convert(reference);
      const to = file.use('rdma-rpc/json', name === 'fromJSON' ? 'fromJson' : 'toJson');
      const rest = call.getArguments().map((each) => `, ${file.render(each)}`);
      file.replaceNode(call, `${to}(${local}${rest.join('')})`);
    } else if (['encode', 'decode', 'create', 'typeName'].includes(name)) {
      file.convert(reference, local);
    } else
      file.block('messages', reference.node, `${reference.name}.${name} has no counterpart`, generatorPage);
  }

  /** Returns whether the import is of code from another generator. */
  isGenerated({ module, declaration }: Imported): boolean {
    const known = this.#modules.get(module);
    if (known !== undefined) return known;
    const found = isGeneratedImport(module, declaration.getSourceFile().getFilePath());
    this.#modules.set(module, found);
    return found;
  }

  /** Returns the path of a module that this file imports. */
  #path(module: string): string {
    return module.startsWith('.') ? resolve(dirname(this.#file.source.getFilePath()), module) : module;
  }

  /** Returns the extension that the replaced import used: .js, .ts or none. */
  #specifier(file: string, module: string): string {
    const extension = /\.([jt]s)$/.exec(module)?.[0] ?? '';
    const path = relative(dirname(this.#file.source.getFilePath()), file).split(sep).join('/');
    return `${path.startsWith('.') ? '' : './'}${path}${extension}`;
  }
}

const isGeneric = (node: Node): boolean => Node.isTypeReference(node) && node.getTypeArguments().length > 0;
