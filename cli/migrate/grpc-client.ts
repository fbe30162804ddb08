/**
 * Converts clients of grpc-js: constructors, and calls with a callback. The rules of grpc-js use this file.
 */
import {
  type CallExpression,
  type NewExpression,
  Node,
  type ObjectLiteralExpression,
  SyntaxKind,
} from 'ts-morph';
import { addressOf } from './addresses.ts';
import type { FileChange } from './file-change.ts';
import type { GeneratedNames } from './generated-imports.ts';
import { splitCallback } from './grpc-callbacks.ts';
import { grpcClientPage, securityPage, streamsPage } from './left.ts';
import type { Reference } from './references.ts';
import { type Kind, kindOf, promised } from './values.ts';

/** Converts `new GreeterClient(address, credentials.createInsecure())`. */
export function newClient(
  file: FileChange,
  made: NewExpression,
  reference: Reference,
  names: GeneratedNames,
  credentials: (node: Node | undefined) => Reference | undefined,
): void {
  const [address, given, ...others] = made.getArguments();
  const plain = credentials(given);
  const definition = names.named(reference.name.replace(/Client$/, 'Definition'), reference);
  if (definition === undefined || address === undefined || plain === undefined || others.length > 0) {
    const text =
      definition === undefined
        ? `${reference.name} has no definition in the code that --gen names`
        : `new ${reference.name} with credentials or options: they are options of createChannel`;
    file.block('client', made, text, securityPage);
    return;
  }
  const found = addressOf(address, file.render(address));
  if ('why' in found) {
    file.block('client', made, found.why, grpcClientPage);
    return;
  }
  file.convert(reference);
  file.convert(plain);
  const channel = `${file.use('rdma-rpc', 'createChannel')}(${found.text})`;
  const create = `${file.use('rdma-rpc', 'createClient')}(${names.use(definition, reference.imported)}, `;
  const closed = channelName(made);
  if (closed === undefined) file.replaceNode(made, `${create}${channel})`);
  else {
    const statement = made.getFirstAncestorByKindOrThrow(SyntaxKind.VariableStatement);
    const indent = ' '.repeat(statement.getStart() - statement.getStartLinePos());
    file.replaceNode(made, `${create}${closed})`);
    file.edits.insert(statement.getStart(), `const ${closed} = ${channel};\n${indent}`);
  }
}

/**
 * Returns a name for a channel variable if the file closes the client that `made` creates; otherwise
 * undefined.
 */
function channelName(made: NewExpression): string | undefined {
  const variable = made.getParent();
  if (!Node.isVariableDeclaration(variable) || variable.getVariableStatement() === undefined)
    return undefined;
  const name = variable.getName();
  const closes = made
    .getSourceFile()
    .getDescendantsOfKind(SyntaxKind.CallExpression)
    .some((call) => isCloseOf(call, name));
  return closes ? `${name}Channel` : undefined;
}

const isCloseOf = (call: CallExpression, name: string): boolean =>
  call.getExpression().getText() === `${name}.close`;

export function clientCall(
  file: FileChange,
  call: CallExpression,
  known: (node: Node) => Kind | undefined,
): void {
  const callee = call.getExpressionIfKindOrThrow(SyntaxKind.PropertyAccessExpression);
  const name = callee.getName();
  const owner = callee.getExpression();
  if (name === 'close') {
    close(file, call, owner);
    return;
  }
  const given = call.getArguments();
  const callback = given.at(-1);
  if (callback === undefined || !isFunction(callback) || name === 'bind' || name === 'waitForReady') {
    const loop = call.getParent();
    if (Node.isForOfStatement(loop) && loop.getAwaitKeyword() !== undefined) return;
    file.block(
      'client',
      call,
      `${callee.getText()}(…) has no callback: a stream is read with for await, and a single response awaited`,
      streamsPage,
    );
    return;
  }
  const [request, ...others] = given.slice(0, -1);
  const options = optionsOf(file, others, known);
  const then = splitCallback(file, callback, { error: 'is looked at' });
  if (
    request === undefined ||
    options === undefined ||
    then === undefined ||
    (!Node.isExpressionStatement(call.getParent()) && !isReturned(call))
  ) {
    file.block(
      'client',
      call,
      `${callee.getText()}(…): the call returns a promise here; only callbacks that begin with if (error), and the options metadata and deadline are converted`,
      grpcClientPage,
    );
    return;
  }
  file.replaceNode(call, `${file.render(callee)}(${file.render(request)}${options})${then('')}`);
}

/** Returns whether the call is a return value. The return value of a call with a callback is never used. */
const isReturned = (call: Node): boolean =>
  Node.isArrowFunction(call.getParent()) || Node.isReturnStatement(call.getParent());

function isFunction(node: Node): boolean {
  if (Node.isArrowFunction(node) || Node.isFunctionExpression(node)) return true;
  return Node.isIdentifier(node) && /^(callback|cb|done)$/.test(node.getText());
}

/**
 * Converts metadata and options of grpc-js to options of a call, with a comma in front. Returns undefined
 * when they cannot be converted.
 */
function optionsOf(
  file: FileChange,
  given: readonly Node[],
  known: (node: Node) => Kind | undefined,
): string | undefined {
  const parts: string[] = [];
  for (const each of given) {
    if (Node.isObjectLiteralExpression(each)) {
      const deadline = deadlineOf(file, each);
      if (deadline === undefined) return undefined;
      parts.push(...deadline);
    } else if (kindOf(each, known) === 'metadata') {
      const text = file.render(each);
      parts.push(text === 'metadata' ? text : `metadata: ${text}`);
    } else return undefined;
  }
  return parts.length === 0 ? '' : `, { ${parts.join(', ')} }`;
}

/** Converts `{ deadline: Date.now() + 1000 }`. */
function deadlineOf(file: FileChange, options: ObjectLiteralExpression): string[] | undefined {
  const found: string[] = [];
  for (const property of options.getProperties()) {
    if (!Node.isPropertyAssignment(property) || property.getName() !== 'deadline') return undefined;
    let time: Node | undefined = property.getInitializer();
    if (Node.isNewExpression(time) && time.getExpression().getText() === 'Date') [time] = time.getArguments();
    if (
      !Node.isBinaryExpression(time) ||
      time.getOperatorToken().getText() !== '+' ||
      time.getLeft().getText() !== 'Date.now()'
    )
      return undefined;
    found.push(`timeoutMs: ${file.render(time.getRight())}`);
  }
  return found;
}

/** Converts `client.close()` to closing the channel. */
function close(file: FileChange, call: CallExpression, owner: Node): void {
  const variable = Node.isIdentifier(owner)
    ? owner.getSymbol()?.getDeclarations().find(Node.isVariableDeclaration)
    : undefined;
  const made = variable?.getInitializer();
  const name = Node.isNewExpression(made) ? channelName(made) : undefined;
  if (name === undefined)
    file.block('client', call, 'client.close(): close the channel of createClient', grpcClientPage);
  else file.replaceNode(call, promised(call, `${name}.close()`));
}
