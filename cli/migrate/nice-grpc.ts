/**
 * The rules that convert code for nice-grpc. migrate-file.ts uses this file.
 */
import { type CallExpression, Node, SyntaxKind } from 'ts-morph';
import { addressOf } from './addresses.ts';
import { convertErrorFields } from './errors.ts';
import type { FileChange, Group } from './file-change.ts';
import { interceptorsPage, nicePage, securityPage } from './left.ts';
import { isNice } from './libraries.ts';
import type { Reference } from './references.ts';
import { typeOfVariable } from './status-codes.ts';
import { isStatement, type Kind, kindOf, promised } from './values.ts';

const groups: Readonly<Record<string, Group>> = {
  createServer: 'server',
  Server: 'server',
  ServerCredentials: 'server',
  createChannel: 'client',
  createClient: 'client',
  Channel: 'client',
  Client: 'client',
  CallOptions: 'client',
  ChannelCredentials: 'client',
  ServerError: 'errors',
  ClientError: 'errors',
  Status: 'errors',
  Metadata: 'metadata',
  CallContext: 'server',
  ServiceImplementation: 'server',
};

const types: Readonly<Record<string, string>> = {
  Server: 'Server',
  Channel: 'Channel',
  Client: 'Client',
  CallOptions: 'CallOptions',
  Metadata: 'Metadata',
  CallContext: 'HandlerContext',
  ServiceImplementation: 'Handlers',
  ServerError: 'RpcError',
  ClientError: 'RpcError',
  Status: 'StatusCode',
};

export function migrateNice(file: FileChange): void {
  const byNode = new Map(file.references.filter(isNice).map((each) => [each.node, each]));
  const known = (node: Node): Kind | undefined => kindByName(node, byNode);
  for (const call of file.source.getDescendantsOfKind(SyntaxKind.CallExpression).reverse())
    methodCall(file, call, known);
  // Credentials are processed last, because createChannel and listen leave out credentials that mean the
  // default.
  const isCredentials = ({ name }: Reference): number => Number(name.endsWith('Credentials'));
  for (const reference of [...byNode.values()].sort((a, b) => isCredentials(a) - isCredentials(b))) {
    const group = groups[reference.name];
    if (group === undefined) unknown(file, reference);
    else if (file.allows(group) || isNumber(reference)) convert(file, reference, group);
  }
  convertErrorFields(
    file,
    (node) => ['ServerError', 'ClientError'].includes(byNode.get(node)?.name ?? ''),
    { details: 'rawMessage' },
    nicePage,
  );
}

/** `createClientFactory().create(…)` has no middleware, so it becomes createClient. */
function unknown(file: FileChange, reference: Reference): void {
  const { node, name, module, imported } = reference;
  const create =
    name === 'createClientFactory'
      ? node.getFirstAncestorByKind(SyntaxKind.PropertyAccessExpression)
      : undefined;
  const call = create?.getParent();
  if (
    create?.getExpression() !== node.getParent() ||
    create?.getName() !== 'create' ||
    !Node.isCallExpression(call)
  ) {
    file.block(
      'client',
      imported.node,
      `${name} of ${module}: middleware is written as interceptors here`,
      nicePage,
    );
  } else if (call.getArguments().length !== 2) {
    file.block('client', node, 'create with default options: name its methods, or * for all', nicePage);
  } else if (file.allows('client')) {
    file.convert(reference);
    file.replaceNode(create, file.use('rdma-rpc', 'createClient'));
  }
}

/** Returns whether the reference is a status code, which has the same number in all libraries. */
function isNumber({ name, node, inType }: Reference): boolean {
  return name === 'Status' && !inType && Node.isPropertyAccessExpression(node.getParent());
}

function kindByName(node: Node, byNode: ReadonlyMap<Node, Reference>): Kind | undefined {
  const name = (of: Node): string | undefined => byNode.get(of)?.name;
  if (Node.isCallExpression(node)) {
    const kinds: Readonly<Record<string, Kind>> = {
      createServer: 'server',
      createChannel: 'channel',
      createClient: 'client',
      Metadata: 'metadata',
    };
    return kinds[name(node.getExpression()) ?? ''];
  }
  if (Node.isNewExpression(node)) return name(node.getExpression()) === 'Metadata' ? 'metadata' : undefined;
  if (Node.isTypeReference(node)) {
    const kinds: Readonly<Record<string, Kind>> = {
      Server: 'server',
      Channel: 'channel',
      Client: 'client',
      Metadata: 'metadata',
      CallContext: 'context',
    };
    return kinds[name(node.getTypeName()) ?? ''];
  }
  return undefined;
}

function convert(file: FileChange, reference: Reference, group: Group): void {
  const { node, name, inType } = reference;
  const parent = node.getParentOrThrow();
  if (inType && Node.isTypeReference(parent) && parent.getTypeArguments().length > 1) {
    file.block(group, node, `${name} of nice-grpc with more than one type argument`, nicePage);
    return;
  }
  if (inType) {
    if (name === 'ServerError' || name === 'ClientError' || types[name] !== undefined)
      file.convert(reference, file.use('rdma-rpc', types[name]!, 'type'));
    else file.block(group, node, `the type ${name} of nice-grpc has no counterpart`, nicePage);
    return;
  }
  const called = Node.isCallExpression(parent) && parent.getExpression() === node ? parent : undefined;
  switch (name) {
    case 'Status':
      if (Node.isPropertyAccessExpression(parent)) {
        typeOfVariable(file, parent);
        file.convert(reference, file.use('rdma-rpc', 'Status'));
      } else if (Node.isElementAccessExpression(parent)) {
        file.convert(reference);
        file.replaceNode(
          parent,
          `${file.use('rdma-rpc', 'statusName')}(${file.render(parent.getArgumentExpressionOrThrow())})`,
        );
      } else
        file.block(
          group,
          node,
          'Status is used as a value: it has no names by number here, see statusName',
          nicePage,
        );
      return;
    case 'ServerError':
    case 'ClientError':
      if (name === 'ClientError' && !Node.isBinaryExpression(parent) && !Node.isCallExpression(parent))
        file.block(
          group,
          node,
          'ClientError(path, code, details) is made or extended: RpcError has (code, details)',
          nicePage,
        );
      else file.convert(reference, file.use('rdma-rpc', 'RpcError'));
      return;
    case 'Metadata':
      if (called !== undefined) file.edits.insert(node.getStart(), 'new ');
      file.convert(reference, file.use('rdma-rpc', 'Metadata'));
      return;
    case 'createServer':
      if (called === undefined || called.getArguments().length > 0)
        file.block(
          group,
          node,
          'createServer with channel options: see the options of this package',
          'docs/reference/options.md',
        );
      else file.convert(reference, file.use('rdma-rpc', 'createServer'));
      return;
    case 'createClient':
      if (called === undefined || called.getArguments().length !== 2)
        file.block(
          group,
          node,
          'createClient with default options: name its methods, or * for all',
          nicePage,
        );
      else file.convert(reference, file.use('rdma-rpc', 'createClient'));
      return;
    case 'createChannel':
      channel(file, reference, called);
      return;
    case 'ChannelCredentials':
    case 'ServerCredentials':
      // If they can be left out, createChannel and listen have marked them as converted.
      if (!file.isConverted(reference))
        file.blockWith(group, node, 'credentials: give the option tls instead', securityPage);
      return;
    default:
      file.block(group, node, `${name} of nice-grpc is used as a value`, nicePage);
  }
}

/** Returns the references of arguments that mean no TLS, which is the default here. */
function isInsecure(file: FileChange, argument: Node | undefined): Reference | undefined {
  if (!Node.isCallExpression(argument)) return undefined;
  const callee = argument.getExpression();
  if (!Node.isPropertyAccessExpression(callee) || callee.getName() !== 'createInsecure') return undefined;
  return file.references.find(({ node }) => node === callee.getExpression());
}

function channel(file: FileChange, reference: Reference, call: CallExpression | undefined): void {
  const [address, credentials, options] = call?.getArguments() ?? [];
  const insecure = isInsecure(file, credentials);
  if (
    call === undefined ||
    address === undefined ||
    options !== undefined ||
    (credentials !== undefined && insecure === undefined)
  ) {
    file.block(
      'client',
      reference.node,
      'createChannel with credentials or options: see the options of this package',
      securityPage,
    );
    return;
  }
  const found = addressOf(address, file.render(address));
  if ('why' in found) {
    file.block('client', reference.node, found.why, securityPage);
    return;
  }
  file.convert(reference, file.use('rdma-rpc', 'createChannel'));
  if (insecure !== undefined) file.convert(insecure);
  file.edits.replace(address.getStart(), (credentials ?? address).getEnd(), found.text);
}

function methodCall(file: FileChange, call: CallExpression, known: (node: Node) => Kind | undefined): void {
  const callee = call.getExpression();
  if (!Node.isPropertyAccessExpression(callee)) return;
  const kind = kindOf(callee.getExpression(), known);
  const name = callee.getName();
  if (kind === 'server' && file.allows('server')) serverCall(file, call, name);
  if (
    kind === 'channel' &&
    name === 'close' &&
    file.allows('client') &&
    Node.isExpressionStatement(call.getParent())
  )
    file.replaceNode(call, promised(call, file.render(call)));
}

function serverCall(file: FileChange, call: CallExpression, name: string): void {
  const callee = call.getExpressionIfKindOrThrow(SyntaxKind.PropertyAccessExpression);
  const target = file.render(callee.getExpression());
  const [address, credentials] = call.getArguments();
  switch (name) {
    case 'use':
    case 'with':
      file.leave(
        call,
        `server.${name}(…): write the middleware as an interceptor${name === 'with' ? ', and call scope() for with()' : ''}`,
        interceptorsPage,
      );
      return;
    case 'forceShutdown':
      file.replaceNode(call, promised(call, `${target}.shutdown({ graceMs: 0 })`));
      return;
    case 'listen': {
      if (address === undefined) return;
      const insecure = isInsecure(file, credentials);
      if (credentials !== undefined && insecure === undefined) {
        file.block('server', call, 'listen with credentials: give createServer the option tls', securityPage);
        return;
      }
      if (insecure !== undefined) {
        file.convert(insecure);
        file.edits.replace(address.getEnd(), credentials!.getEnd(), '');
      }
      port(file, call);
    }
  }
}

/** The promise of listen resolves with the address instead of the port. */
function port(file: FileChange, call: CallExpression): void {
  if (isStatement(call)) return;
  const parent = call.getParent();
  if (!Node.isAwaitExpression(parent)) {
    file.leave(call, 'listen() resolves with the address here, and not with the port', nicePage);
    return;
  }
  file.replaceNode(parent, `Number((${file.render(parent)}).split(':').at(-1))`);
}
