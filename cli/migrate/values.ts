/**
 * Finds out what an expression is: a server, a channel, a client or metadata. It uses only initializers and
 * written types within the file, because the libraries may not be installed. The rules of each library use
 * this file.
 */
import { Node } from 'ts-morph';

export type Kind = 'server' | 'channel' | 'client' | 'metadata' | 'context' | 'router';

/** Returns the kind of a call, a `new` or a type reference in one library. */
export type KindOf = (node: Node) => Kind | undefined;

const depthMax = 8;

export function kindOf(expression: Node | undefined, known: KindOf, depth = 0): Kind | undefined {
  if (expression === undefined || depth > depthMax) return undefined;
  const again = (node: Node | undefined): Kind | undefined => kindOf(node, known, depth + 1);
  if (
    Node.isAwaitExpression(expression) ||
    Node.isParenthesizedExpression(expression) ||
    Node.isAsExpression(expression) ||
    Node.isNonNullExpression(expression)
  )
    return again(expression.getExpression());
  const found = known(expression);
  if (found !== undefined) return found;
  // These methods return their own object.
  if (Node.isCallExpression(expression)) {
    const callee = expression.getExpression();
    if (Node.isPropertyAccessExpression(callee) && /^(add|use|set|append)$/.test(callee.getName()))
      return again(callee.getExpression());
    return undefined;
  }
  if (Node.isIdentifier(expression))
    return declaredKind(expression.getSymbol()?.getDeclarations() ?? [], known, depth);
  if (Node.isPropertyAccessExpression(expression) && Node.isThisExpression(expression.getExpression()))
    return memberKind(expression, known, depth);
  return undefined;
}

function declaredKind(declarations: readonly Node[], known: KindOf, depth: number): Kind | undefined {
  for (const declaration of declarations) {
    if (
      !Node.isVariableDeclaration(declaration) &&
      !Node.isParameterDeclaration(declaration) &&
      !Node.isPropertyDeclaration(declaration)
    )
      continue;
    const type = declaration.getTypeNode();
    const found = (type && typeKind(type, known)) ?? kindOf(declaration.getInitializer(), known, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns the kind of a written type, such as `Channel` or `Channel | undefined`. */
function typeKind(type: Node, known: KindOf): Kind | undefined {
  if (!Node.isUnionTypeNode(type)) return known(type);
  return type
    .getTypeNodes()
    .map(known)
    .find((kind) => kind !== undefined);
}

/** Returns the kind of a class member, by its declaration or by an assignment to it. */
function memberKind(access: Node, known: KindOf, depth: number): Kind | undefined {
  if (!Node.isPropertyAccessExpression(access)) return undefined;
  const owner = access.getFirstAncestor(Node.isClassDeclaration);
  const name = access.getName();
  const declared = [
    owner?.getInstanceMember(name),
    ...(owner?.getConstructors() ?? []).map((each) => each.getParameter(name)),
  ];
  const found = declaredKind(
    declared.filter((each) => each !== undefined),
    known,
    depth,
  );
  if (found !== undefined || owner === undefined) return found;
  for (const assignment of owner.getDescendants()) {
    if (!Node.isBinaryExpression(assignment) || assignment.getOperatorToken().getText() !== '=') continue;
    if (assignment.getLeft().getText() !== `this.${name}`) continue;
    const kind = kindOf(assignment.getRight(), known, depth + 1);
    if (kind !== undefined) return kind;
  }
  return undefined;
}

/** Returns whether an `await` may be inserted at the node. */
function mayAwait(node: Node): boolean {
  const inner = node.getFirstAncestor(
    (each) =>
      Node.isFunctionLikeDeclaration(each) || Node.isFunctionExpression(each) || Node.isArrowFunction(each),
  );
  // The import is not inserted at the top level, where an `await` would delay the code after it.
  if (inner === undefined) return false;
  return (
    (Node.isFunctionDeclaration(inner) ||
      Node.isMethodDeclaration(inner) ||
      Node.isFunctionExpression(inner) ||
      Node.isArrowFunction(inner)) &&
    inner.isAsync()
  );
}

/** Returns whether the value is unused, as in `x;`, `await x;` and `void x;`. */
export function isStatement(node: Node): boolean {
  const parent = node.getParent();
  if (parent === undefined) return false;
  if (Node.isExpressionStatement(parent)) return true;
  return (Node.isAwaitExpression(parent) || Node.isVoidExpression(parent)) && isStatement(parent);
}

/**
 * Returns the text for a promise that replaces a call without a result. The text begins with `await` in
 * functions that allow it, otherwise with `void`. It stays unchanged when its value is already used.
 */
export function promised(call: Node, text: string): string {
  const parent = call.getParent();
  if (parent === undefined || !Node.isExpressionStatement(parent)) return text;
  return `${mayAwait(call) ? 'await' : 'void'} ${text}`;
}
