/** Status codes of the libraries: the same numbers, and mostly the same names. Used by the rules of each. */
import { Node, SyntaxKind } from 'ts-morph';
import type { FileChange } from './file-change.ts';

/**
 * Call it for `Status.NOT_FOUND`. The codes of this package are constants and not an enum, so that a variable
 * that begins with one code, and gets others, needs a type.
 */
export function typeOfVariable(file: FileChange, access: Node): void {
  const parent = access.getParent();
  const isVariable =
    (Node.isVariableDeclaration(parent) && parent.getVariableStatement()?.getDeclarationKind() === 'let') ||
    Node.isParameterDeclaration(parent) ||
    (Node.isPropertyDeclaration(parent) && !parent.isReadonly());
  if (!isVariable || parent.getTypeNode() !== undefined || parent.getInitializer() !== access) return;
  if (/\.jsx?$|\.[cm]js$/.test(file.source.getFilePath())) return;
  const name = parent.getNameNode();
  const mark = parent.getFirstChildByKind(SyntaxKind.QuestionToken) ?? name;
  file.edits.insert(mark.getEnd(), `: ${file.use('rdma-rpc', 'StatusCode', 'type')}`);
}

/** Whether there are comments in the node beside those in its parts. */
export function hasComments(node: Node, parts: readonly Node[]): boolean {
  let text = node.getText();
  for (const part of parts) text = text.replace(part.getText(), '');
  return /\/[/*]/.test(text);
}
