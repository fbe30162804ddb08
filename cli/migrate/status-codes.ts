/**
 * Converts status codes, which have the same numbers and mostly the same names. The rules of each library use
 * this file.
 */
import { Node, SyntaxKind } from 'ts-morph';
import type { FileChange } from './file-change.ts';

/**
 * Adds a type to a variable that is initialized with `access`, such as `Status.NOT_FOUND`. The codes of this
 * package are constants, not an enum, so a variable that later gets another code needs a written type.
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

/** Returns whether the node has comments outside of these parts. */
export function hasComments(node: Node, parts: readonly Node[]): boolean {
  let text = node.getText();
  for (const part of parts) text = text.replace(part.getText(), '');
  return /\/[/*]/.test(text);
}
