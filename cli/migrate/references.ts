/**
 * Finds the imports of a file, and the uses of each imported name. file-change.ts and the rules use this
 * file.
 */
import {
  type EntityName,
  type Identifier,
  type ImportDeclaration,
  Node,
  type SourceFile,
  SyntaxKind,
} from 'ts-morph';

export interface Imported {
  readonly module: string;
  /** Name of the module's export, such as `Status`, `default` or `*`. */
  readonly name: string;
  readonly local: string;
  readonly kind: 'named' | 'default' | 'namespace';
  /** The local name in the import. */
  readonly node: Identifier;
  readonly declaration: ImportDeclaration;
}

/** One use of an export of a module. */
export interface Reference {
  readonly imported: Imported;
  readonly module: string;
  /** The name in the module, which is `status` for `grpc.status`. It is empty for a namespace as a whole. */
  readonly name: string;
  /** The node `Status`, or the whole node `grpc.Status`. */
  readonly node: Node;
  readonly inType: boolean;
}

export function importedNames(source: SourceFile): Imported[] {
  return source.getImportDeclarations().flatMap((declaration) => {
    const module = declaration.getModuleSpecifierValue();
    const all: Imported[] = [];
    const add = (name: string, kind: Imported['kind'], node: Identifier | undefined): void => {
      if (node !== undefined) all.push({ module, name, local: node.getText(), kind, node, declaration });
    };
    add('default', 'default', declaration.getDefaultImport());
    add('*', 'namespace', declaration.getNamespaceImport());
    for (const specifier of declaration.getNamedImports()) {
      const local = specifier.getAliasNode() ?? specifier.getNameNode();
      if (Node.isIdentifier(local)) add(specifier.getName(), 'named', local);
    }
    return all;
  });
}

/** Returns the identifiers, without names in comments such as those of `@param`. */
export function identifiersIn(node: Node): Identifier[] {
  return node
    .getDescendantsOfKind(SyntaxKind.Identifier)
    .filter((each) => each.getFirstAncestor(Node.isJSDoc) === undefined);
}

/** Returns the references in reverse order, so that nested nodes come before the nodes around them. */
export function referencesIn(source: SourceFile, imports: readonly Imported[]): Reference[] {
  const byName = new Map(imports.map((each) => [each.local, each]));
  const found: Reference[] = [];
  for (const identifier of identifiersIn(source)) {
    const imported = byName.get(identifier.getText());
    if (imported === undefined || !isUse(identifier) || isShadowed(identifier, imported)) continue;
    found.push(referenceOf(identifier, imported));
  }
  return found.reverse();
}

function referenceOf(identifier: Identifier, imported: Imported): Reference {
  const { module } = imported;
  const inType =
    identifier.getFirstAncestor(
      (each) => Node.isTypeNode(each) && !Node.isExpressionWithTypeArguments(each),
    ) !== undefined;
  if (imported.kind === 'named') return { imported, module, name: imported.name, node: identifier, inType };
  const parent = identifier.getParent();
  if (Node.isPropertyAccessExpression(parent) && parent.getExpression() === identifier)
    return { imported, module, name: parent.getName(), node: parent, inType };
  if (Node.isQualifiedName(parent) && parent.getLeft() === (identifier as EntityName))
    return { imported, module, name: parent.getRight().getText(), node: parent, inType: true };
  return { imported, module, name: imported.kind === 'default' ? 'default' : '', node: identifier, inType };
}

/** Returns whether the identifier is a use, rather than the name of a member, a declaration or an import. */
function isUse(identifier: Identifier): boolean {
  const parent = identifier.getParent();
  if (Node.isImportSpecifier(parent) || Node.isImportClause(parent) || Node.isNamespaceImport(parent))
    return false;
  if (Node.isPropertyAccessExpression(parent)) return parent.getExpression() === identifier;
  if (Node.isQualifiedName(parent)) return parent.getLeft() === (identifier as EntityName);
  if (Node.isPropertyAssignment(parent)) return parent.getInitializer() === identifier;
  if (Node.isExportSpecifier(parent) || Node.isShorthandPropertyAssignment(parent)) return true;
  if (Node.isJsxAttribute(parent)) return false;
  return !(Node.hasName(parent) && parent.getNameNode() === identifier) && !Node.isBindingElement(parent);
}

/** Returns whether a parameter or variable with the same name hides the import. */
function isShadowed(identifier: Identifier, { local, declaration }: Imported): boolean {
  for (
    let scope: Node | undefined = identifier.getParent();
    scope !== undefined && !Node.isSourceFile(scope);
    scope = scope.getParent()
  ) {
    if (
      !Node.isBlock(scope) &&
      !Node.isFunctionLikeDeclaration(scope) &&
      !Node.isForOfStatement(scope) &&
      !Node.isForStatement(scope)
    )
      continue;
    const inner = scope.getLocal(local);
    if (
      inner !== undefined &&
      !inner.getDeclarations().some((each) => each.getFirstAncestor((up) => up === declaration))
    )
      return true;
  }
  return false;
}
