/**
 * Finds where a handler of grpc-js ends, and converts its errors. grpc-handlers.ts uses this file.
 */
import { Node, type Statement } from 'ts-morph';
import type { FileChange } from './file-change.ts';

/** Returns whether no code of the handler runs after the statement. */
export function isTail(statement: Node, handler: Node): boolean {
  const parent = statement.getParent();
  if (parent === undefined) return false;
  if (Node.isBlock(parent)) {
    const statements = parent.getStatements();
    const next = statements[statements.indexOf(statement as Statement) + 1];
    if (Node.isReturnStatement(next) && next.getExpression() === undefined) return true;
    if (next !== undefined) return false;
    return parent.getParent() === handler || isTail(parent, handler);
  }
  if (Node.isIfStatement(parent)) return isTail(parent, handler);
  // Code after the try statement runs after its block and after its catch clause; a finally block always
  // runs.
  if (Node.isCatchClause(parent)) return isTail(parent.getParentOrThrow(), handler);
  if (Node.isTryStatement(parent)) return statement !== parent.getFinallyBlock() && isTail(parent, handler);
  return false;
}

/**
 * Returns `{ code, details }` as an RpcError, or undefined for any other value. Clients of grpc-js get
 * UNKNOWN for errors without a code.
 */
export function errorText(file: FileChange, error: Node): string | undefined {
  const create = (code: string, message: string): string =>
    `new ${file.use('rdma-rpc', 'RpcError')}(${code}, ${message})`;
  if (Node.isNewExpression(error) && error.getExpression().getText() === 'Error') {
    const [message] = error.getArguments();
    return create(
      `${file.use('rdma-rpc', 'Status')}.UNKNOWN`,
      message === undefined ? "''" : file.render(message),
    );
  }
  const object = Node.isAsExpression(error) ? error.getExpression() : error;
  if (!Node.isObjectLiteralExpression(object)) return undefined;
  const found = new Map<string, string>();
  for (const property of object.getProperties()) {
    if (Node.isShorthandPropertyAssignment(property)) found.set(property.getName(), property.getName());
    else if (Node.isPropertyAssignment(property))
      found.set(property.getName(), file.render(property.getInitializerOrThrow()));
    else return undefined;
  }
  const code = found.get('code');
  const message = found.get('details') ?? found.get('message') ?? "''";
  for (const name of found.keys())
    if (!['code', 'details', 'message', 'name'].includes(name)) return undefined;
  return code === undefined ? undefined : create(code, message);
}
