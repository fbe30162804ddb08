/**
 * What an expression is, as far as a file shows it: a server, a channel, a client, metadata. Found by its
 * initializer or its written type, without the types of the libraries, which need not be installed. Used by
 * the rules of each library.
 */
import { Node } from 'ts-morph';

export type Kind = 'server' | 'channel' | 'client' | 'metadata' | 'context' | 'router';

/** The kind of a call, a `new` or a type reference, by the library of the rules. */
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
  // Methods that return their object.
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

/** `Channel`, and `Channel | undefined`. */
function typeKind(type: Node, known: KindOf): Kind | undefined {
  if (!Node.isUnionTypeNode(type)) return known(type);
  return type
    .getTypeNodes()
    .map(known)
    .find((kind) => kind !== undefined);
}

/** Of a member of a class: its declaration, or what is assigned to it. */
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

/** Whether an `await` may stand there. */
export function mayAwait(node: Node): boolean {
  const inner = node.getFirstAncestor(
    (each) =>
      Node.isFunctionLikeDeclaration(each) || Node.isFunctionExpression(each) || Node.isArrowFunction(each),
  );
  // At the top of a file, too, the code behind it goes on as before.
  if (inner === undefined) return false;
  return (
    (Node.isFunctionDeclaration(inner) ||
      Node.isMethodDeclaration(inner) ||
      Node.isFunctionExpression(inner) ||
      Node.isArrowFunction(inner)) &&
    inner.isAsync()
  );
}

/** Its value is not used: `x;`, `await x;`, `void x;`. */
export function isStatement(node: Node): boolean {
  const parent = node.getParent();
  if (parent === undefined) return false;
  if (Node.isExpressionStatement(parent)) return true;
  return (Node.isAwaitExpression(parent) || Node.isVoidExpression(parent)) && isStatement(parent);
}

/**
 * A promise in place of a call that returned nothing: awaited where that can be, and where it was not awaited
 * before.
 */
export function promised(call: Node, text: string): string {
  const parent = call.getParent();
  if (parent === undefined || !Node.isExpressionStatement(parent)) return text;
  return `${mayAwait(call) ? 'await' : 'void'} ${text}`;
}
