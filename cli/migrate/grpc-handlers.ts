/**
 * Converts handlers of grpc-js, with a callback or with `call.write`, to functions that return their response
 * or yield messages. A handler is converted when all paths through it are clear. A service is converted with
 * all of its handlers or stays as it is. The rules of grpc-js use this file.
 */
import {
  type ArrowFunction,
  type CallExpression,
  type FunctionDeclaration,
  type FunctionExpression,
  type MethodDeclaration,
  Node,
  type ObjectLiteralExpression,
  type ParameterDeclaration,
  SyntaxKind,
} from 'ts-morph';
import type { FileChange } from './file-change.ts';
import type { GeneratedNames } from './generated-imports.ts';
import { uses } from './grpc-callbacks.ts';
import { convertMetadata } from './grpc-metadata.ts';
import { errorText, isTail } from './grpc-returns.ts';
import { grpcServerPage, streamsPage } from './left.ts';
import { identifiersIn } from './references.ts';

type Handler = ArrowFunction | FunctionExpression | MethodDeclaration | FunctionDeclaration;

function convertHandler(file: FileChange, handler: Handler, converted: Set<Node>): void {
  converted.add(handler);
  new HandlerChange(file, handler).convert();
}

/** Converts functions whose types say that they are handlers, because another file may register them. */
export function typedHandlers(file: FileChange, types: readonly Node[], converted: Set<Node>): void {
  for (const type of types) {
    const parameter = type.getFirstAncestorByKind(SyntaxKind.Parameter);
    const handler = parameter?.getParent();
    if (parameter === undefined || parameter.getTypeNode() !== type.getParent()) continue;
    if (!isHandler(handler) || converted.has(handler) || handler.getParameters()[0] !== parameter) continue;
    convertHandler(file, handler, converted);
  }
}

const isHandler = (node: Node | undefined): node is Handler =>
  Node.isArrowFunction(node) ||
  Node.isFunctionExpression(node) ||
  Node.isMethodDeclaration(node) ||
  Node.isFunctionDeclaration(node);

/** Converts `server.addService(GreeterService, handlers)`. */
export function addService(
  file: FileChange,
  call: CallExpression,
  names: GeneratedNames,
  converted: Set<Node>,
): void {
  const callee = call.getExpressionIfKindOrThrow(SyntaxKind.PropertyAccessExpression);
  const [service, handlers] = call.getArguments();
  const target = names.targetOf(service);
  if (target === undefined || !/Definition$/.test(target.found.name)) {
    file.block(
      'server',
      call,
      `addService(${service?.getText() ?? ''}): its definition is not in the code that --gen names`,
      grpcServerPage,
    );
    return;
  }
  const object = objectOf(handlers);
  if (object === undefined) {
    file.block('server', call, 'addService: its handlers are no object of this file', grpcServerPage);
    return;
  }
  for (const property of object.getProperties()) {
    const handler = handlerOf(property);
    if (handler === 'imported')
      file.leave(property, 'a handler of another file: see that it has been converted', grpcServerPage);
    else if (handler === undefined)
      file.block('server', property, 'this handler is no function of this file', grpcServerPage);
    else if (!converted.has(handler)) convertHandler(file, handler, converted);
  }
  file.replaceNode(callee.getNameNode(), 'add');
}

function objectOf(handlers: Node | undefined): ObjectLiteralExpression | undefined {
  if (Node.isObjectLiteralExpression(handlers)) return handlers;
  if (!Node.isIdentifier(handlers)) return undefined;
  const variable = handlers.getSymbol()?.getDeclarations().find(Node.isVariableDeclaration);
  const made = variable?.getInitializer();
  return variable?.getTypeNode() === undefined && Node.isObjectLiteralExpression(made) ? made : undefined;
}

function handlerOf(property: Node): Handler | 'imported' | undefined {
  if (Node.isMethodDeclaration(property)) return property;
  const value = Node.isPropertyAssignment(property) ? property.getInitializer() : undefined;
  if (Node.isArrowFunction(value) || Node.isFunctionExpression(value)) return value;
  const name = Node.isShorthandPropertyAssignment(property) ? property.getNameNode() : value;
  if (!Node.isIdentifier(name)) return undefined;
  const symbol = Node.isShorthandPropertyAssignment(property) ? property.getValueSymbol() : name.getSymbol();
  const found = symbol?.getDeclarations()[0];
  if (Node.isImportSpecifier(found)) return 'imported';
  if (Node.isFunctionDeclaration(found)) return found;
  const made =
    Node.isVariableDeclaration(found) && found.getTypeNode() === undefined
      ? found.getInitializer()
      : undefined;
  return Node.isArrowFunction(made) || Node.isFunctionExpression(made) ? made : undefined;
}

class HandlerChange {
  readonly #file: FileChange;
  readonly #handler: Handler;
  #usesContext = false;

  constructor(file: FileChange, handler: Handler) {
    this.#file = file;
    this.#handler = handler;
  }

  convert(): boolean {
    const [call, callback, ...others] = this.#handler.getParameters();
    const body = this.#handler.getBody();
    if (call === undefined || others.length > 0 || !Node.isIdentifier(call.getNameNode()))
      return this.#leave(this.#handler, 'its parameters are not those of a handler');
    const request = this.#free(['request', 'message', 'incoming']);
    const streams = callback === undefined;
    if (streams && uses(this.#handler, call) > 0 && !this.#writes(call))
      return this.#leave(this.#handler, 'a stream of requests is read with for await', streamsPage);
    this.#convertCall(call, request, streams);
    if (callback !== undefined) this.#convertCallback(callback);
    if (!Node.isBlock(body) && callback === undefined) return this.#leave(this.#handler, 'it has no body');
    if (streams) this.#makeGenerator();
    this.#parameters(call, callback, request);
    const returned = this.#handler.getReturnTypeNode();
    if (returned !== undefined)
      this.#file.edits.replace(this.#handler.getParameters().at(-1)!.getEnd(), returned.getEnd(), ')');
    return true;
  }

  #leave(node: Node, text: string, page = grpcServerPage): false {
    this.#file.block('server', node, `a handler stays as it is: ${text}`, page);
    return false;
  }

  #free(names: readonly string[]): string {
    const declared = new Set(
      identifiersIn(this.#handler)
        .filter(
          (each) =>
            Node.hasName(each.getParentOrThrow()) && !Node.isPropertyAccessExpression(each.getParent()),
        )
        .map((each) => each.getText()),
    );
    return names.find((name) => !declared.has(name)) ?? 'rdmaRequest';
  }

  #refs(parameter: ParameterDeclaration): Node[] {
    const name = parameter.getNameNode();
    return identifiersIn(this.#handler).filter(
      (each) => each !== name && each.getText() === name.getText() && !isMember(each),
    );
  }

  #writes(call: ParameterDeclaration): boolean {
    return this.#refs(call).some((each) => each.getParent()?.getText() === `${call.getName()}.write`);
  }

  #convertCall(call: ParameterDeclaration, request: string, streams: boolean): void {
    const file = this.#file;
    for (const each of this.#refs(call).reverse()) {
      const access = each.getParent();
      const member = Node.isPropertyAccessExpression(access) ? access.getName() : '';
      const outer = access?.getParent();
      if (member === 'request' && isAccessor(outer))
        this.#leave(each, `${outer.getText()}(): messages are plain objects, without getters`);
      else if (member === 'request') file.replaceNode(access!, request);
      else if (
        member === 'metadata' &&
        Node.isPropertyAccessExpression(outer) &&
        Node.isCallExpression(outer.getParent())
      ) {
        this.#usesContext = true;
        file.replaceNode(access!, 'context.metadata');
        convertMetadata(file, outer.getParentIfKindOrThrow(SyntaxKind.CallExpression));
      } else if (member === 'getPeer' && Node.isCallExpression(outer)) {
        this.#usesContext = true;
        file.replaceNode(outer, 'context.peer.address');
      } else if (member === 'cancelled') {
        this.#usesContext = true;
        file.replaceNode(access!, 'context.signal.aborted');
      } else if (streams && (member === 'write' || member === 'end') && Node.isCallExpression(outer))
        this.#streamCall(outer, member);
      else
        this.#leave(
          each,
          `${(Node.isExpression(access) ? access : each).getText().split('\n')[0]} has another form here`,
        );
    }
  }

  /** Converts `call.write(message)` and `call.end()`. */
  #streamCall(call: CallExpression, name: 'write' | 'end'): void {
    const statement = call.getParent();
    const [message, ...others] = call.getArguments();
    if (!Node.isExpressionStatement(statement) || !this.#isOwn(call) || others.length > 0) {
      this.#leave(call, `${name}() stands where no yield can`, streamsPage);
    } else if (name === 'write' && message !== undefined) {
      this.#file.replaceNode(call, `yield ${this.#file.render(message)}`);
    } else if (name === 'end' && message === undefined && isTail(statement, this.#handler))
      this.#endStream(statement);
    else this.#leave(call, `${name}() in the middle of the handler`, streamsPage);
  }

  #endStream(statement: Node): void {
    if (isLast(statement, this.#handler)) this.#file.removeStatement(statement);
    else this.#end(statement, 'return;');
  }

  #convertCallback(callback: ParameterDeclaration): void {
    for (const each of this.#refs(callback).reverse()) {
      const call = each.getParent();
      if (!Node.isCallExpression(call) || call.getExpression() !== each)
        this.#leave(each, 'its callback is passed on');
      else if (!this.#isOwn(call)) this.#leave(call, 'its callback is called in another function');
      else this.#answer(call);
    }
  }

  /** Converts one call of the callback to `return` or `throw`. */
  #answer(call: CallExpression): boolean {
    const file = this.#file;
    const statement = call.getParent();
    const arrow = Node.isArrowFunction(statement) && statement === this.#handler;
    if (!arrow && !Node.isExpressionStatement(statement) && !Node.isReturnStatement(statement))
      return this.#leave(call, 'the result of its callback is used');
    const [error, value, ...others] = call.getArguments();
    if (!arrow && Node.isExpressionStatement(statement) && !isTail(statement, this.#handler))
      return this.#leave(call, 'something happens after its callback');
    if (error === undefined || others.length > 0)
      return this.#leave(call, 'its callback has a trailer or flags: see context.trailer');
    if (['null', 'undefined'].includes(error.getText())) {
      if (value === undefined) return this.#leave(call, 'it answers nothing');
      const text = file.render(value);
      const answer = Node.isObjectLiteralExpression(value) ? `(${text})` : text;
      this.#end(arrow ? call : statement!, arrow ? answer : `return ${text};`);
      return true;
    }
    const thrown = errorText(file, error);
    if (thrown === undefined)
      return this.#leave(call, 'its error is no object with code and details: throw an RpcError');
    if (
      call
        .getAncestors()
        .some(
          (each) =>
            Node.isTryStatement(each) &&
            each.getCatchClause() !== undefined &&
            isWithin(call, each.getTryBlock()),
        )
    )
      return this.#leave(call, 'its error would be caught by the same function');
    this.#end(arrow ? call : statement!, arrow ? `{ throw ${thrown}; }` : `throw ${thrown};`);
    return true;
  }

  /** Replaces a node, and a `return;` that follows it. */
  #end(node: Node, text: string): void {
    const next = Node.isStatement(node) ? node.getNextSibling(Node.isReturnStatement) : undefined;
    this.#file.edits.replace(node.getStart(), (next ?? node).getEnd(), text);
  }

  /** Returns whether the node is in the handler itself, not in a nested function. */
  #isOwn(node: Node): boolean {
    return (
      node.getFirstAncestor(
        (each) =>
          Node.isFunctionLikeDeclaration(each) ||
          Node.isArrowFunction(each) ||
          Node.isFunctionExpression(each),
      ) === this.#handler
    );
  }

  /**
   * Makes the handler an `async *name(…)`. An arrow function becomes a method, because it cannot be a
   * generator.
   */
  #makeGenerator(): boolean {
    const handler = this.#handler;
    const file = this.#file;
    const text = 'async *';
    if (Node.isMethodDeclaration(handler)) {
      const start = handler.isAsync() ? handler.getStart() : handler.getNameNode().getStart();
      file.edits.replace(start, handler.getNameNode().getStart(), text);
      return true;
    }
    if (Node.isFunctionDeclaration(handler) && handler.getNameNode() !== undefined) {
      const start =
        handler.getAsyncKeyword() ?? handler.getFirstChildByKindOrThrow(SyntaxKind.FunctionKeyword);
      file.edits.replace(start.getStart(), handler.getNameNode()!.getStart(), 'async function* ');
      return true;
    }
    const property = handler.getParent();
    if (!Node.isPropertyAssignment(property))
      return this.#leave(handler, 'a stream of responses is an asynchronous generator', streamsPage);
    if (handler.getDescendantsOfKind(SyntaxKind.ThisKeyword).length > 0)
      return this.#leave(handler, 'this would be another object', streamsPage);
    const [first] = handler.getParameters();
    const body = handler.getBody();
    if (first === undefined || !Node.isBlock(body))
      return this.#leave(handler, 'it has no body', streamsPage);
    file.edits.insert(property.getStart(), text);
    file.edits.replace(property.getNameNode().getEnd(), first.getStart(), '(');
    file.edits.replace(first.getEnd(), body.getStart(), ') ');
    return true;
  }

  /** Converts the parameters. Keeps the request's type from `ServerUnaryCall<HelloRequest, HelloReply>`. */
  #parameters(call: ParameterDeclaration, callback: ParameterDeclaration | undefined, request: string): void {
    const file = this.#file;
    const given = call.getTypeNode();
    const [type] = Node.isTypeReference(given) ? given.getTypeArguments() : [];
    const last = callback ?? call;
    for (const each of file.references) {
      const inside = isWithin(each.node, call) || isWithin(each.node, last);
      if (inside && (type === undefined || !isWithin(each.node, type))) file.convert(each);
    }
    const typed = (): string =>
      type === undefined ? 'context' : `context: ${file.use('rdma-rpc', 'HandlerContext', 'type')}`;
    const context = this.#usesContext ? `, ${typed()}` : '';
    const bare = Node.isArrowFunction(this.#handler) && !/^(async )?\(/.test(this.#handler.getText());
    if (type === undefined) {
      const text = `${request}${context}`;
      file.edits.replace(call.getStart(), last.getEnd(), bare ? `(${text})` : text);
    } else {
      file.edits.replace(call.getStart(), type.getStart(), `${request}: `);
      file.edits.replace(type.getEnd(), last.getEnd(), context);
    }
  }
}

/** Matches `request.getName` of google-protobuf. */
const isAccessor = (node: Node | undefined): node is Node =>
  Node.isPropertyAccessExpression(node) &&
  /^(get|has|clear|set)[A-Z]/.test(node.getName()) &&
  Node.isCallExpression(node.getParent());

const isMember = (identifier: Node): boolean => {
  const parent = identifier.getParent();
  return (
    (Node.isPropertyAccessExpression(parent) && parent.getNameNode() === identifier) ||
    (Node.isPropertyAssignment(parent) && parent.getNameNode() === identifier)
  );
};
const isWithin = (node: Node, outer: Node): boolean =>
  node.getPos() >= outer.getPos() && node.getEnd() <= outer.getEnd();
const isLast = (statement: Node, handler: Handler): boolean => {
  const body = handler.getBody();
  return Node.isBlock(body) && body.getStatements().at(-1) === statement;
};
