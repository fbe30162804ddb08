/**
 * Converts functions of @bufbuild/protobuf on schemas of protoc-gen-es. migrate-file.ts uses this file.
 */
import { type CallExpression, Node } from 'ts-morph';
import type { FileChange } from './file-change.ts';
import type { GeneratedNames } from './generated-imports.ts';
import { connectPage } from './left.ts';
import type { Reference } from './references.ts';
import { hasComments } from './status-codes.ts';

/** Functions of protobuf-es, and the methods of a message type that replace them. */
const methods: Readonly<Record<string, string>> = {
  create: 'create',
  toBinary: 'encode',
  fromBinary: 'decode',
};
const jsonFunctions = ['toJson', 'fromJson', 'toJsonString', 'fromJsonString'];

export function migrateProtobufEs(file: FileChange, names: GeneratedNames): void {
  for (const reference of file.references) {
    if (reference.module !== '@bufbuild/protobuf' || !file.allows('messages')) continue;
    const { node, name } = reference;
    const parent = node.getParentOrThrow();
    const call = Node.isCallExpression(parent) && parent.getExpression() === node ? parent : undefined;
    if (call !== undefined && convertCall(file, reference, call, names)) continue;
    if (Node.isTypeReference(parent) && convertType(file, reference, parent, names)) continue;
    file.blockWith(
      'messages',
      node,
      `${name} of @bufbuild/protobuf: only create, toBinary, fromBinary and JSON of generated messages are converted`,
      connectPage,
    );
  }
}

function convertCall(
  file: FileChange,
  reference: Reference,
  call: CallExpression,
  names: GeneratedNames,
): boolean {
  const [schema, value, ...options] = call.getArguments();
  const target = names.targetOf(schema);
  const isJson = jsonFunctions.includes(reference.name);
  const method = methods[reference.name];
  if (
    target === undefined ||
    target.found.typeOnly ||
    options.length > 0 ||
    hasComments(call, call.getArguments()) ||
    (!isJson && method === undefined)
  )
    return false;
  const type = names.use(target.found, target.reference.imported);
  const rest = value === undefined ? '' : file.render(value);
  file.convert(reference);
  file.convert(target.reference);
  file.replaceNode(
    call,
    isJson ? `${file.use('rdma-rpc/json', reference.name)}(${type}, ${rest})` : `${type}.${method}(${rest})`,
  );
  return true;
}

/** Converts `MessageShape<typeof HelloRequestSchema>` and `MessageInitShape<…>`. */
function convertType(file: FileChange, reference: Reference, type: Node, names: GeneratedNames): boolean {
  if (!Node.isTypeReference(type) || !['MessageShape', 'MessageInitShape'].includes(reference.name))
    return false;
  const [query] = type.getTypeArguments();
  const target = Node.isTypeQuery(query) ? names.targetOf(query.getExprName()) : undefined;
  if (target === undefined) return false;
  const name = reference.name === 'MessageShape' ? target.found.name : `${target.found.name}Init`;
  const found = names.named(name, target.reference);
  if (found === undefined) return false;
  file.convert(reference);
  file.convert(target.reference);
  file.replaceNode(type, names.use({ ...found, typeOnly: true }, target.reference.imported));
  return true;
}
