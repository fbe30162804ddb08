/**
 * Renames fields of errors. The rules of each library use this file.
 */
import { Node, SyntaxKind } from 'ts-morph';
import type { FileChange } from './file-change.ts';

/**
 * Renames fields of a variable to those of RpcError, in each function or block that checks `error instanceof
 * X`. `isClass` returns whether X is the library's error class. `renamed` maps the library's names to ours.
 * An empty name means that the field has no counterpart and is left for a person.
 */
export function convertErrorFields(
  file: FileChange,
  isClass: (node: Node) => boolean,
  renamed: Readonly<Record<string, string>>,
  page: string,
): void {
  if (!file.allows('errors')) return;
  const checked = new Set<string>();
  const done = new Set<Node>();
  for (const check of file.source.getDescendantsOfKind(SyntaxKind.BinaryExpression)) {
    if (check.getOperatorToken().getKind() !== SyntaxKind.InstanceOfKeyword || !isClass(check.getRight()))
      continue;
    const variable = check.getLeft();
    if (!Node.isIdentifier(variable)) continue;
    checked.add(variable.getText());
    const declaration = variable.getSymbol()?.getDeclarations()[0];
    const scope = declaration?.getFirstAncestor(
      (each) =>
        Node.isCatchClause(each) ||
        Node.isFunctionLikeDeclaration(each) ||
        Node.isArrowFunction(each) ||
        Node.isSourceFile(each),
    );
    for (const access of scope?.getDescendantsOfKind(SyntaxKind.PropertyAccessExpression) ?? []) {
      const owner = access.getExpression();
      if (
        done.has(access) ||
        owner.getText() !== variable.getText() ||
        owner.getSymbol() !== variable.getSymbol()
      )
        continue;
      done.add(access);
      const instead = renamed[access.getName()];
      if (instead === '') file.leave(access, `${access.getName()} of the error has another form here`, page);
      else if (instead !== undefined) file.replaceNode(access.getNameNode(), instead);
    }
  }
}
