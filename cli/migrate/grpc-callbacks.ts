/**
 * Converts callbacks whose first parameter is an error into the functions of a promise's `then`. The rules of
 * grpc-js use this file for calls of clients and servers.
 */
import {
  type ArrowFunction,
  type FunctionExpression,
  type IfStatement,
  Node,
  type ParameterDeclaration,
  type Statement,
  SyntaxKind,
} from 'ts-morph';
import type { FileChange } from './file-change.ts';
import { identifiersIn } from './references.ts';

/**
 * Returns the text that follows the promise, such as `.then(…)`. `bound` is the name of the resolved value
 * when the callback's value is made from it.
 */
export type Then = (bound: string) => string;

export interface CallbackOptions {
  /**
   * Whether a callback that ignores its error may be converted. If such a callback is converted, the
   * rejection is unhandled.
   */
  readonly error: 'is looked at' | 'may be ignored';
  /** Returns a statement that makes the callback's value from the resolved value. */
  readonly value?: (name: string, bound: string) => string;
}

/** Converts a callback. Returns undefined when its success and failure paths cannot be separated. */
export function splitCallback(
  file: FileChange,
  callback: Node | undefined,
  options: CallbackOptions,
): Then | undefined {
  if (callback === undefined) return () => '';
  if (Node.isIdentifier(callback)) {
    const name = callback.getText();
    if (options.value !== undefined) return undefined;
    return () => `.then((value) => ${name}(null, value), ${name})`;
  }
  if (!Node.isArrowFunction(callback) && !Node.isFunctionExpression(callback)) return undefined;
  const [error, value, ...others] = callback.getParameters();
  if (others.length > 0 || usesThis(callback)) return undefined;
  const ways = waysOf(file, callback, error);
  if (ways === undefined || (ways.failed === undefined && options.error === 'is looked at')) return undefined;
  if (error !== undefined) renameFields(file, error);
  return (bound) => {
    const { done, failed } = ways;
    const name = value?.getName() ?? '';
    const used = value !== undefined && uses(callback, value) > 0;
    const converted = used && options.value !== undefined;
    const parameter = converted ? bound : used ? file.render(value) : '';
    const before = converted ? options.value!(name, bound) : '';
    const onDone = done(before);
    const asyncWord = callback.isAsync() ? 'async ' : '';
    const onFailed = failed === undefined ? undefined : `${asyncWord}(${error!.getName()}) => ${failed()}`;
    if (onDone === '{}' && onFailed === undefined) return '';
    return `.then(${asyncWord}(${parameter}) => ${onDone}${onFailed === undefined ? '' : `, ${onFailed}`})`;
  };
}

interface Ways {
  /** Returns the success path, with the statement `before` in front. */
  readonly done: (before: string) => string;
  /** Returns the failure path. It is undefined when the callback ignores its error. */
  readonly failed: (() => string) | undefined;
}

function waysOf(
  file: FileChange,
  callback: ArrowFunction | FunctionExpression,
  error: ParameterDeclaration | undefined,
): Ways | undefined {
  const body = callback.getBody();
  if (!Node.isBlock(body)) {
    if (error !== undefined && uses(body, error) > 0) return waysOfExpression(file, body, error);
    const text = file.render(body);
    return { done: (before) => (before === '' ? text : `{ ${before} return ${text}; }`), failed: undefined };
  }
  const statements = body.getStatements();
  const [first, ...rest] = statements;
  if (error === undefined || uses(body, error) === 0) {
    return { done: (before) => blockText(file, statements, before), failed: undefined };
  }
  if (!Node.isIfStatement(first) || !asksFor(first, error)) return undefined;
  const otherwise = first.getElseStatement();
  const failed = (): string => blockText(file, statementsOf(first.getThenStatement()), '');
  if (otherwise !== undefined) {
    if (rest.length > 0 || uses(otherwise, error) > 0) return undefined;
    return { done: (before) => blockText(file, statementsOf(otherwise), before), failed };
  }
  if (rest.length > 0 && !leaves(first.getThenStatement())) return undefined;
  if (rest.some((each) => uses(each, error) > 0)) return undefined;
  return { done: (before) => blockText(file, rest, before), failed };
}

/** Splits an expression such as `err ? reject(err) : resolve(value)`. */
function waysOfExpression(file: FileChange, given: Node, error: ParameterDeclaration): Ways | undefined {
  const body = Node.isParenthesizedExpression(given) ? given.getExpression() : given;
  if (!Node.isConditionalExpression(body) || body.getCondition().getText() !== error.getName())
    return undefined;
  if (uses(body.getWhenFalse(), error) > 0) return undefined;
  const text = (node: Node): string => file.render(node);
  return {
    done: (before) =>
      before === '' ? text(body.getWhenFalse()) : `{ ${before} return ${text(body.getWhenFalse())}; }`,
    failed: () => text(body.getWhenTrue()),
  };
}

function asksFor(statement: IfStatement, error: ParameterDeclaration): boolean {
  const name = error.getName();
  return [name, `${name} !== null`, `${name} != null`, `${name} !== undefined`, `!!${name}`].includes(
    statement.getExpression().getText(),
  );
}

const statementsOf = (statement: Statement): Statement[] =>
  Node.isBlock(statement) ? statement.getStatements() : [statement];

function leaves(statement: Statement): boolean {
  const last = statementsOf(statement).at(-1);
  return Node.isReturnStatement(last) || Node.isThrowStatement(last);
}

/** Returns a block with the statement `before`, these statements, and the comments between and after them. */
function blockText(file: FileChange, statements: readonly Statement[], before: string): string {
  const [first] = statements;
  const last = statements.at(-1);
  // The text reaches to the end of the block, because a statement there may have been removed with its line.
  const block = last?.getParent();
  const end =
    Node.isBlock(block) && block.getStatements().at(-1) === last ? block.getEnd() - 1 : last?.getEnd();
  const text = first === undefined ? '' : file.edits.render(first.getFullStart(), end).trimEnd();
  if (text.trim() === '') return before === '' ? '{}' : `{ ${before} }`;
  if (!text.includes('\n')) return `{ ${[before, text.trim()].filter((each) => each !== '').join(' ')} }`;
  const indent = ' '.repeat(first!.getStart() - first!.getStartLinePos());
  const head = before === '' ? '' : `\n${indent}${before}`;
  return `{${head}${text.startsWith('\n') ? text : `\n${indent}${text.trimStart()}`}\n${indent.slice(2)}}`;
}

export function uses(within: Node, parameter: ParameterDeclaration): number {
  const name = parameter.getNameNode();
  const symbol = name.getSymbol();
  return identifiersIn(within).filter(
    (each) =>
      each !== name &&
      each.getText() === name.getText() &&
      (each.getSymbol() === symbol ||
        each.getSymbol() === undefined ||
        Node.isShorthandPropertyAssignment(each.getParent())),
  ).length;
}

function usesThis(callback: ArrowFunction | FunctionExpression): boolean {
  return (
    Node.isFunctionExpression(callback) && callback.getDescendantsOfKind(SyntaxKind.ThisKeyword).length > 0
  );
}

/** Renames fields of a ServiceError to those of RpcError. */
function renameFields(file: FileChange, error: ParameterDeclaration): void {
  const instead: Readonly<Record<string, string>> = { details: 'rawMessage', metadata: 'trailer' };
  for (const access of error.getParentOrThrow().getDescendantsOfKind(SyntaxKind.PropertyAccessExpression)) {
    const name = instead[access.getName()];
    if (name !== undefined && access.getExpression().getText() === error.getName())
      file.replaceNode(access.getNameNode(), name);
  }
}
