/**
 * The rules that convert code for connect-es. migrate-file.ts uses this file.
 */
import {
  type CallExpression,
  type NewExpression,
  Node,
  type ObjectLiteralExpression,
  SyntaxKind,
} from 'ts-morph';
import { addressOf } from './addresses.ts';
import { convertErrorFields } from './errors.ts';
import type { FileChange } from './file-change.ts';
import { browsersPage, connectPage, interceptorsPage, metadataPage, testingPage } from './left.ts';
import { isConnect } from './libraries.ts';
import type { Reference } from './references.ts';
import { hasComments, typeOfVariable } from './status-codes.ts';
import { type Kind, kindOf } from './values.ts';

const upper = (name: string): string => name.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
const statusOf = (code: string): string => (code === 'Canceled' ? 'CANCELLED' : upper(code));

const transports = new Set(['createGrpcTransport', 'createConnectTransport', 'createGrpcWebTransport']);
const types: Readonly<Record<string, string>> = {
  Transport: 'Channel',
  Client: 'Client',
  PromiseClient: 'Client',
  ConnectRouter: 'Server',
  HandlerContext: 'HandlerContext',
  ServiceImpl: 'Handlers',
  CallOptions: 'CallOptions',
  ConnectError: 'RpcError',
  ContextValues: 'ContextValues',
  ContextKey: 'ContextKey',
};
const leftOnly: Readonly<Record<string, [text: string, page: string]>> = {
  Interceptor: ['write it for the requests of this package', interceptorsPage],
  createRouterTransport: ['createInProcessChannel((server) => …) takes its place', testingPage],
  createCallbackClient: ['clients have promises only', connectPage],
  connectNodeAdapter: ['createServer() and listen() take the place of the HTTP server', connectPage],
  fastifyConnectPlugin: ['createServer() and listen() take the place of the HTTP server', connectPage],
  expressConnectMiddleware: ['createServer() and listen() take the place of the HTTP server', connectPage],
};

export function migrateConnect(file: FileChange): void {
  const byNode = new Map(file.references.filter(isConnect).map((each) => [each.node, each]));
  const known = (node: Node): Kind | undefined => kindByName(node, byNode);
  for (const call of file.source.getDescendantsOfKind(SyntaxKind.CallExpression).reverse())
    methodCall(file, call, known);
  for (const access of file.source.getDescendantsOfKind(SyntaxKind.PropertyAccessExpression).reverse())
    contextField(file, access, known);
  for (const reference of byNode.values()) convert(file, reference);
  convertErrorFields(
    file,
    (node) => byNode.get(node)?.name === 'ConnectError',
    { metadata: 'trailer', details: '' },
    connectPage,
  );
}

function kindByName(node: Node, byNode: ReadonlyMap<Node, Reference>): Kind | undefined {
  const name = (of: Node): string => byNode.get(of)?.name ?? '';
  if (Node.isCallExpression(node)) {
    const called = name(node.getExpression());
    if (called === 'createClient' || called === 'createPromiseClient') return 'client';
    return transports.has(called) ? 'channel' : undefined;
  }
  if (!Node.isTypeReference(node)) return undefined;
  const kinds: Readonly<Record<string, Kind>> = {
    Client: 'client',
    PromiseClient: 'client',
    Transport: 'channel',
    ConnectRouter: 'router',
    HandlerContext: 'context',
  };
  return kinds[name(node.getTypeName())];
}

function convert(file: FileChange, reference: Reference): void {
  const { node, name, inType, module } = reference;
  const parent = node.getParentOrThrow();
  if (name === 'Code') {
    if (inType) {
      if (file.allows('errors')) file.convert(reference, file.use('rdma-rpc', 'StatusCode', 'type'));
    } else if (Node.isPropertyAccessExpression(parent)) {
      file.convert(reference);
      typeOfVariable(file, parent);
      file.replaceNode(parent, `${file.use('rdma-rpc', 'Status')}.${statusOf(parent.getName())}`);
    } else
      file.block(
        'errors',
        node,
        'Code as a value has other names here: see Status and statusName',
        connectPage,
      );
    return;
  }
  if (name in leftOnly) {
    const [text, page] = leftOnly[name]!;
    file.block(name === 'Interceptor' ? 'client' : 'server', node, `${name}: ${text}`, page);
    return;
  }
  if (/connect-web$/.test(module)) {
    file.block('client', node, `${name} of ${module}: a browser cannot be a client`, browsersPage);
    return;
  }
  if (!file.allows('client')) return;
  if (inType) {
    const instead = types[name];
    if (instead === undefined)
      file.block('client', node, `the type ${name} of ${module} has no counterpart`, connectPage);
    else file.convert(reference, file.use('rdma-rpc', instead, 'type'));
    return;
  }
  const call = Node.isCallExpression(parent) && parent.getExpression() === node ? parent : undefined;
  if (transports.has(name)) transport(file, reference, call);
  else if (name === 'createClient' || name === 'createPromiseClient')
    file.convert(reference, file.use('rdma-rpc', 'createClient'));
  else if (name === 'ConnectError') error(file, reference, parent);
  else if (name === 'createContextKey') file.convert(reference, file.use('rdma-rpc', 'createContextKey'));
  else if (name === 'createContextValues' && call !== undefined) {
    file.convert(reference);
    file.replaceNode(call, `new ${file.use('rdma-rpc', 'ContextValues')}()`);
  } else file.block('client', node, `${name} of ${module} has no counterpart by the same name`, connectPage);
}

function error(file: FileChange, reference: Reference, parent: Node): void {
  const local = file.use('rdma-rpc', 'RpcError');
  if (!Node.isNewExpression(parent) || parent.getExpression() !== reference.node) {
    const access = Node.isPropertyAccessExpression(parent) ? parent.getName() : '';
    if (access === '' || access === 'from') file.convert(reference, local);
    else file.block('errors', reference.node, `ConnectError.${access} has no counterpart`, connectPage);
    return;
  }
  const text = newError(file, parent, local);
  if (text === undefined) {
    file.block(
      'errors',
      parent,
      'ConnectError with details, a cause or comments between: see RpcError',
      connectPage,
    );
    return;
  }
  file.convert(reference);
  file.replaceNode(parent, text);
}

/** Converts an error's arguments: message and code swap places, and metadata becomes the option `trailer`. */
function newError(file: FileChange, error: NewExpression, local: string): string | undefined {
  const [message, code, metadata, ...others] = error.getArguments();
  if (message === undefined || others.length > 0 || hasComments(error, error.getArguments()))
    return undefined;
  if (metadata !== undefined && !Node.isObjectLiteralExpression(metadata)) return undefined;
  const status =
    code === undefined || code.getText() === 'undefined'
      ? `${file.use('rdma-rpc', 'Status')}.UNKNOWN`
      : file.render(code);
  const trailer = metadata === undefined ? '' : `, { trailer: ${file.render(metadata)} }`;
  return `new ${local}(${status}, ${file.render(message)}${trailer})`;
}

function propertyOf(object: ObjectLiteralExpression, name: string) {
  const found = object.getProperty(name);
  return Node.isPropertyAssignment(found) ? found.getInitializer() : undefined;
}

function transport(file: FileChange, reference: Reference, call: CallExpression | undefined): void {
  const [options] = call?.getArguments() ?? [];
  const names = Node.isObjectLiteralExpression(options)
    ? options.getProperties().map((each) => (Node.hasName(each) ? each.getName() : ''))
    : [''];
  const url = Node.isObjectLiteralExpression(options) ? propertyOf(options, 'baseUrl') : undefined;
  const other = names.find((name) => !['baseUrl', 'httpVersion', 'useBinaryFormat'].includes(name));
  if (call === undefined || url === undefined || other !== undefined) {
    const what =
      other === undefined || other === '' ? 'options that do not stand there' : `the option ${other}`;
    file.block(
      'client',
      reference.node,
      `${reference.name} with ${what}: createChannel has options of its own`,
      other === 'interceptors' ? interceptorsPage : connectPage,
    );
    return;
  }
  if (
    !Node.isStringLiteral(url) &&
    !Node.isTemplateExpression(url) &&
    !Node.isNoSubstitutionTemplateLiteral(url)
  ) {
    file.block(
      'client',
      reference.node,
      `${reference.name}: createChannel takes host:port, and not a URL such as ${url.getText()}`,
      connectPage,
    );
    return;
  }
  const found = addressOf(url, file.render(url));
  if ('why' in found) {
    file.block('client', reference.node, found.why, connectPage);
    return;
  }
  file.convert(reference);
  file.replaceNode(call, `${file.use('rdma-rpc', 'createChannel')}(${found.text})`);
}

function methodCall(file: FileChange, call: CallExpression, known: (node: Node) => Kind | undefined): void {
  const callee = call.getExpression();
  if (!Node.isPropertyAccessExpression(callee) || !file.allows('client')) return;
  const kind = kindOf(callee.getExpression(), known);
  if (kind === 'router' && callee.getName() === 'service') {
    if (call.getArguments().length > 2)
      file.block('server', call, 'router.service with options: see the options of createServer', connectPage);
    else file.replaceNode(callee.getNameNode(), 'add');
  } else if (kind === 'router')
    file.block('server', call, `router.${callee.getName()} has no counterpart`, connectPage);
  if (kind !== 'client') return;
  const [, options] = call.getArguments();
  if (!Node.isObjectLiteralExpression(options)) return;
  for (const [name, instead] of [
    ['headers', 'metadata'],
    ['contextValues', 'values'],
  ] as const) {
    const property = options.getProperty(name);
    if (property === undefined) continue;
    if (
      Node.isPropertyAssignment(property) &&
      (name !== 'headers' || Node.isObjectLiteralExpression(property.getInitializer()))
    )
      file.replaceNode(property.getNameNode(), instead);
    else
      file.block(
        'client',
        property,
        `${name}: the option is called ${instead}, and takes a plain object or Metadata`,
        metadataPage,
      );
  }
}

/**
 * Converts fields of a handler's context. For a missing key `get` returned null, and now returns undefined.
 */
function contextField(file: FileChange, access: Node, known: (node: Node) => Kind | undefined): void {
  if (!Node.isPropertyAccessExpression(access) || !file.allows('server')) return;
  const instead = { requestHeader: 'metadata', responseHeader: 'header', responseTrailer: 'trailer' }[
    access.getName()
  ];
  if (instead === undefined || !isContext(access.getExpression(), known)) return;
  const method = access.getParent();
  const name = Node.isPropertyAccessExpression(method) ? method.getName() : '';
  const use = method?.getParent()?.getParent();
  const compared = use !== undefined && /\bnull\b/.test(Node.isBinaryExpression(use) ? use.getText() : '');
  if (!['get', 'set', 'append', 'has', 'delete'].includes(name) || compared)
    file.block(
      'server',
      access,
      `${access.getName()} is not Headers here, but Metadata: a key that is not there gives undefined`,
      metadataPage,
    );
  else file.replaceNode(access.getNameNode(), instead);
}

/**
 * Returns whether this is a handler's second parameter, by its type or by its position in router.service(…).
 */
function isContext(node: Node, known: (node: Node) => Kind | undefined): boolean {
  if (kindOf(node, known) === 'context') return true;
  if (!Node.isIdentifier(node)) return false;
  const parameter = node.getSymbol()?.getDeclarations().find(Node.isParameterDeclaration);
  const handler = parameter?.getParent();
  if (parameter === undefined || handler === undefined || parameter.getChildIndex() !== 2) return false;
  const object = handler.getFirstAncestor(Node.isObjectLiteralExpression);
  const call = object?.getParent();
  if (!Node.isCallExpression(call)) return false;
  const callee = call.getExpression();
  return (
    Node.isPropertyAccessExpression(callee) &&
    callee.getName() === 'service' &&
    kindOf(callee.getExpression(), known) === 'router'
  );
}
