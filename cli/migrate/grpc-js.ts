/**
 * The rules that convert code for @grpc/grpc-js. migrate-file.ts uses this file.
 */
import { type CallExpression, type NewExpression, Node, SyntaxKind } from 'ts-morph';
import { addressOf } from './addresses.ts';
import type { FileChange } from './file-change.ts';
import type { GeneratedNames } from './generated-imports.ts';
import { splitCallback } from './grpc-callbacks.ts';
import { clientCall, newClient } from './grpc-client.ts';
import { addService, typedHandlers } from './grpc-handlers.ts';
import { convertMetadata } from './grpc-metadata.ts';
import { grpcClientPage, grpcServerPage, securityPage } from './left.ts';
import { isGrpc } from './libraries.ts';
import type { Reference } from './references.ts';
import { typeOfVariable } from './status-codes.ts';
import { type Kind, kindOf, promised } from './values.ts';

const types: Readonly<Record<string, string>> = {
  Metadata: 'Metadata',
  Server: 'Server',
  ServiceError: 'RpcError',
  status: 'StatusCode',
};

export function migrateGrpc(file: FileChange, names: GeneratedNames): void {
  const byNode = new Map(file.references.filter(isGrpc).map((each) => [each.node, each]));
  const known = (node: Node): Kind | undefined => kindByName(node, byNode, names);
  const credentials = (node: Node | undefined): Reference | undefined => insecure(node, byNode);
  for (const reference of byNode.values()) if (reference.name === 'status') status(file, reference);
  if (!file.allows('client')) return;
  const converted = new Set<Node>();
  const handlerTypes = ['ServerUnaryCall', 'ServerWritableStream'];
  for (const call of file.source.getDescendantsOfKind(SyntaxKind.CallExpression).reverse()) {
    const callee = call.getExpression();
    if (!Node.isPropertyAccessExpression(callee)) continue;
    const kind = kindOf(callee.getExpression(), known);
    if (kind === 'metadata') convertMetadata(file, call);
    if (kind === 'client') clientCall(file, call, known);
    if (kind === 'server') serverCall(file, call, credentials, names, converted);
  }
  const typed = [...byNode.values()].filter(({ name, inType }) => inType && handlerTypes.includes(name));
  typedHandlers(
    file,
    typed.map(({ node }) => node),
    converted,
  );
  for (const made of file.source.getDescendantsOfKind(SyntaxKind.NewExpression).reverse()) {
    const target = names.targetOf(made.getExpression());
    if (target !== undefined && /Client$/.test(target.reference.name))
      newClient(file, made, target.reference, names, credentials);
  }
  for (const reference of byNode.values()) if (!file.isConverted(reference)) convert(file, reference);
}

function kindByName(
  node: Node,
  byNode: ReadonlyMap<Node, Reference>,
  names: GeneratedNames,
): Kind | undefined {
  const kinds: Readonly<Record<string, Kind>> = { Server: 'server', Metadata: 'metadata' };
  if (Node.isNewExpression(node)) {
    const generated = names.targetOf(node.getExpression());
    if (generated !== undefined) return /Client$/.test(generated.reference.name) ? 'client' : undefined;
    return kinds[byNode.get(node.getExpression())?.name ?? ''];
  }
  if (Node.isTypeReference(node)) {
    const generated = names.targetOf(node.getTypeName());
    if (generated !== undefined) return /Client$/.test(generated.reference.name) ? 'client' : undefined;
    return kinds[byNode.get(node.getTypeName())?.name ?? ''];
  }
  return undefined;
}

/** Converts status codes, which have the same numbers and names. */
function status(file: FileChange, reference: Reference): void {
  const parent = reference.node.getParentOrThrow();
  if (reference.inType) file.convert(reference, file.use('rdma-rpc', 'StatusCode', 'type'));
  else if (Node.isPropertyAccessExpression(parent)) {
    typeOfVariable(file, parent);
    file.convert(reference, file.use('rdma-rpc', 'Status'));
  } else if (Node.isElementAccessExpression(parent)) {
    file.convert(reference);
    file.replaceNode(
      parent,
      `${file.use('rdma-rpc', 'statusName')}(${file.render(parent.getArgumentExpressionOrThrow())})`,
    );
  } else
    file.leave(
      reference.node,
      'status is used as a value: it has no names by number here, see statusName',
      grpcServerPage,
    );
}

/**
 * Returns the reference in `credentials.createInsecure()` or in its counterpart for servers. Both can be left
 * out, because TLS is off by default here.
 */
function insecure(node: Node | undefined, byNode: ReadonlyMap<Node, Reference>): Reference | undefined {
  if (!Node.isCallExpression(node)) return undefined;
  const callee = node.getExpression();
  if (!Node.isPropertyAccessExpression(callee) || callee.getName() !== 'createInsecure') return undefined;
  const reference = byNode.get(callee.getExpression());
  return ['credentials', 'ServerCredentials', 'ChannelCredentials'].includes(reference?.name ?? '')
    ? reference
    : undefined;
}

function convert(file: FileChange, reference: Reference): void {
  const { node, name, inType } = reference;
  const parent = node.getParentOrThrow();
  if (name === 'status') return;
  if (inType && types[name] !== undefined) {
    file.convert(reference, file.use('rdma-rpc', types[name], 'type'));
    return;
  }
  // The index signature `[name: string]: UntypedHandleCall;`, which grpc-js requires of a class of handlers.
  const member = Node.isIndexSignatureDeclaration(parent.getParent()) ? parent.getParent() : undefined;
  if (name === 'UntypedHandleCall' && member !== undefined) {
    file.convert(reference);
    file.removeStatement(member);
    return;
  }
  const made = Node.isNewExpression(parent) && parent.getExpression() === node ? parent : undefined;
  if (name === 'Metadata' && made !== undefined && made.getArguments().length === 0) {
    file.convert(reference, file.use('rdma-rpc', 'Metadata'));
  } else if (name === 'Server' && made !== undefined) newServer(file, reference, made);
  else if (/^(credentials|ServerCredentials|ChannelCredentials)$/.test(name))
    unusedCredentials(file, reference);
  else if (
    /^(Server\w+Call|ServerWritableStream|ServerReadableStream|ServerDuplexStream|sendUnaryData|handle\w+Call|Untyped\w+)$/.test(
      name,
    )
  )
    file.block('server', node, `${name}: the type of a handler that is not converted`, grpcServerPage);
  else
    file.block(
      'client',
      name === '' ? node : reportedAt(reference),
      `${name === '' ? reference.imported.local : name} of grpc-js has no counterpart by the same name`,
      grpcClientPage,
    );
}

/** Blocks the file because no converted client or server takes these credentials. */
function unusedCredentials(file: FileChange, { node, name }: Reference): void {
  const access = node.getParent();
  if (Node.isPropertyAccessExpression(access) && access.getName() === 'createInsecure')
    file.blockWith(
      'client',
      node,
      `${name}.createInsecure(): the client or server that takes it is not recognized as one`,
      grpcClientPage,
    );
  else
    file.blockWith('client', node, `${name}: give the option tls of the server or the channel`, securityPage);
}

/** Returns the node to report: the import for a named import, each use for a member of `grpc`. */
const reportedAt = ({ imported, node }: Reference): Node =>
  imported.kind === 'named' ? imported.node : node;

/** Options of grpc-js that have a counterpart here. */
const serverOptions: Readonly<Record<string, string>> = {
  'grpc.max_receive_message_length': 'messageMaxBytes',
};

function newServer(file: FileChange, reference: Reference, made: NewExpression): void {
  const [options] = made.getArguments();
  const given = Node.isObjectLiteralExpression(options) ? options.getProperties() : [];
  const known = given.flatMap((each) => {
    if (!Node.isPropertyAssignment(each)) return [];
    const name = serverOptions[each.getName().replace(/['"]/g, '')];
    return name === undefined ? [] : [`${name}: ${file.render(each.getInitializerOrThrow())}`];
  });
  if (options !== undefined && (!Node.isObjectLiteralExpression(options) || known.length < given.length)) {
    file.block(
      'server',
      options,
      'new Server with options: see the options of createServer',
      'docs/reference/options.md',
    );
    return;
  }
  file.convert(reference);
  file.replaceNode(
    made,
    `${file.use('rdma-rpc', 'createServer')}(${known.length === 0 ? '' : `{ ${known.join(', ')} }`})`,
  );
}

function serverCall(
  file: FileChange,
  call: CallExpression,
  credentials: (node: Node | undefined) => Reference | undefined,
  names: GeneratedNames,
  converted: Set<Node>,
): void {
  const callee = call.getExpressionIfKindOrThrow(SyntaxKind.PropertyAccessExpression);
  const target = file.render(callee.getExpression());
  switch (callee.getName()) {
    case 'addService':
      addService(file, call, names, converted);
      return;
    case 'bindAsync':
      bind(file, call, target, credentials);
      return;
    case 'start': {
      // `start()` is not needed, because the server listens once listen() has resolved.
      const statement = call.getParent();
      if (Node.isExpressionStatement(statement)) file.removeStatement(statement);
      else file.block('server', call, 'start(): a server listens when listen() has resolved', grpcServerPage);
      return;
    }
    case 'forceShutdown':
      file.replaceNode(call, promised(call, `${target}.shutdown({ graceMs: 0 })`));
      return;
    case 'tryShutdown': {
      const then = splitCallback(file, call.getArguments()[0], { error: 'may be ignored' });
      if (then === undefined)
        file.block('server', call, 'tryShutdown: shutdown() returns a promise', grpcServerPage);
      else file.replaceNode(call, promisedThen(call, `${target}.shutdown()`, then('')));
      return;
    }
    default:
      file.block('server', call, `server.${callee.getName()} has no counterpart`, grpcServerPage);
  }
}

/** A chain of `then` gets no `await`. */
const promisedThen = (call: Node, promise: string, then: string): string =>
  Node.isExpressionStatement(call.getParent()) && then === '' ? promised(call, promise) : `${promise}${then}`;

function bind(
  file: FileChange,
  call: CallExpression,
  target: string,
  credentials: (node: Node | undefined) => Reference | undefined,
): void {
  const [address, given, callback, ...others] = call.getArguments();
  const plain = credentials(given);
  if (address === undefined || plain === undefined || others.length > 0) {
    file.block(
      'server',
      call,
      'bindAsync with credentials: give createServer the option tls, and call listen()',
      securityPage,
    );
    return;
  }
  const found = addressOf(address, file.render(address));
  const then = splitCallback(file, callback, {
    error: 'may be ignored',
    value: (port, bound) => `const ${port} = Number(${bound}.split(':').at(-1));`,
  });
  if ('why' in found || then === undefined) {
    file.block(
      'server',
      call,
      'why' in found ? found.why : 'bindAsync: listen() returns a promise of the address',
      grpcServerPage,
    );
    return;
  }
  file.convert(plain);
  file.replaceNode(call, promisedThen(call, `${target}.listen(${found.text})`, then('address')));
}
