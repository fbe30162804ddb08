/**
 * Converts uses of grpc-js' Metadata, whose `get` returns a list. The rules of grpc-js use this file.
 */
import { type CallExpression, Node, SyntaxKind } from 'ts-morph';
import type { FileChange } from './file-change.ts';
import { metadataPage } from './left.ts';

const renamed: Readonly<Record<string, string>> = { set: 'set', add: 'append', remove: 'delete' };

export function convertMetadata(file: FileChange, call: CallExpression): void {
  const callee = call.getExpressionIfKindOrThrow(SyntaxKind.PropertyAccessExpression);
  const name = callee.getName();
  const parent = call.getParent();
  if (renamed[name] !== undefined) file.replaceNode(callee.getNameNode(), renamed[name]);
  else if (name === 'clone')
    file.replaceNode(call, `new ${file.use('rdma-rpc', 'Metadata')}(${file.render(callee.getExpression())})`);
  else if (name !== 'get') file.block('metadata', call, `metadata.${name} has no counterpart`, metadataPage);
  else if (Node.isElementAccessExpression(parent) && parent.getArgumentExpression()?.getText() === '0')
    file.replaceNode(parent, file.render(call));
  else file.replaceNode(callee.getNameNode(), 'getAll');
}
