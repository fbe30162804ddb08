/**
 * Applies field masks by the rules of field_mask.proto and of protobuf's FieldMaskUtil. It either copies the
 * fields that a mask names, or updates only those fields. Applications use it.
 */
import { CodecError } from '../error.ts';
import { type Field, fieldsOf, fieldValue, zeroOf } from '../fields.ts';
import { nestingMax } from '../limits.ts';
import { copyOf, mergeField } from '../merge.ts';
import { newMap } from '../message.ts';
import type { MessageType } from '../types.ts';

type Mutable = { [key: string]: unknown };
type AnyType = MessageType<object>;
interface MaskLike {
  readonly paths?: readonly string[] | undefined;
}

export interface MaskMergeOptions {
  /**
   * A message at the end of a mask's path replaces the old message instead of being merged into it. Default
   * false.
   */
  readonly replaceMessages?: boolean | undefined;
  /**
   * Lists and maps replace the old lists and maps. Otherwise lists are appended and maps merged. Default
   * false.
   */
  readonly replaceLists?: boolean | undefined;
}

/** A field of the mask: either the whole field, or some of the fields inside it. */
interface Node {
  readonly field: Field;
  inside: Map<string, Node> | undefined;
}

function refuse(type: AnyType, path: string, why: string): never {
  throw new CodecError(type.typeName, `the field mask has ${JSON.stringify(path.slice(0, 200))}, but ${why}`);
}

/** Adds a path to the tree, one part after the other. A shorter path includes the longer paths below it. */
function addPath(type: AnyType, path: string, root: Map<string, Node>): void {
  const parts = path.split('.');
  if (parts.length > nestingMax) refuse(type, path, `messages are nested at most ${nestingMax} deep`);
  let nodes: Map<string, Node> = root;
  let message = type;
  for (const [i, name] of parts.entries()) {
    const field = fieldsOf(message).find((each) => each.name === name);
    if (field === undefined) refuse(type, path, `${message.typeName} has no field ${JSON.stringify(name)}`);
    let node = nodes.get(name);
    if (node === undefined) {
      node = { field, inside: new Map() };
      nodes.set(name, node);
    }
    if (i === parts.length - 1) {
      node.inside = undefined;
      return;
    }
    const single = field.presence !== 'repeated' && field.presence !== 'map';
    if (field.message === undefined || !single) {
      const what = single ? 'no message' : field.presence === 'map' ? 'a map' : 'repeated';
      refuse(type, path, `${message.typeName}.${name} is ${what}, which only the last part of a path may be`);
    }
    message = field.message;
    // The mask already has the whole field; the rest of the path is still checked.
    nodes = node.inside ?? new Map();
  }
}

function treeOf(type: AnyType, { paths = [] }: MaskLike): Map<string, Node> {
  const root = new Map<string, Node>();
  for (const path of paths) addPath(type, path, root);
  return root;
}

/**
 * Throws CodecError for a mask with a path that messages of the type do not have. The error contains the path
 * and the wrong part. Paths are names of the .proto, joined with dots; only the last part may be repeated or
 * a map. Call it for masks that come from a peer. The functions below call it themselves.
 */
export function checkFieldMask<T, Init>(type: MessageType<T, Init>, mask: MaskLike): void {
  treeOf(type as AnyType, mask);
}

function pruned(type: AnyType, message: object, nodes: Map<string, Node>): object {
  const result = type.create() as Mutable;
  for (const { field, inside } of nodes.values()) {
    const value = fieldValue(message, field);
    if (value === undefined) continue;
    if (inside === undefined || field.message === undefined) mergeField(field, result, value, 0);
    else put(field, result, pruned(field.message, value as object, inside));
  }
  return result;
}

function put(field: Field, message: Mutable, value: unknown): void {
  if (field.oneof === undefined) message[field.key] = value;
  else message[field.oneof] = { case: field.key, value };
}

/**
 * Returns a copy of `message` that has only the fields in the mask, without unknown fields. Without a mask
 * everything is copied; an empty mask copies nothing. Throws CodecError for a path that the message does not
 * have.
 */
export function pruneByMask<T, Init>(
  type: MessageType<T, Init>,
  message: Init,
  mask: MaskLike | undefined,
): T {
  const any = type as AnyType;
  if (mask !== undefined) return pruned(any, message as object, treeOf(any, mask)) as T;
  return copyOf({ message: any } as Field, message, -1) as T;
}

function clear(field: Field, target: Mutable): void {
  switch (field.presence) {
    case 'repeated':
      target[field.key] = [];
      return;
    case 'map':
      target[field.key] = newMap();
      return;
    case 'oneof':
      // Another field of the oneof that is set stays as it is.
      if (fieldValue(target, field) !== undefined) target[field.oneof as string] = { case: undefined };
      return;
    case 'optional':
      target[field.key] = undefined;
      return;
    default:
      target[field.key] = field.message === undefined ? zeroOf(field) : undefined;
  }
}

function mergeNode(
  { field, inside }: Node,
  target: Mutable,
  source: object,
  options: MaskMergeOptions,
): void {
  const value = fieldValue(source, field);
  if (inside !== undefined && field.message !== undefined) {
    const before = fieldValue(target, field);
    if (value === undefined && before === undefined) return;
    const into = (before ?? field.message.create()) as Mutable;
    for (const node of inside.values()) mergeNode(node, into, (value ?? {}) as object, options);
    if (before === undefined) put(field, target, into);
    return;
  }
  const list = field.presence === 'repeated' || field.presence === 'map';
  const replace = list
    ? options.replaceLists === true
    : field.message === undefined || options.replaceMessages === true;
  if (replace) clear(field, target);
  if (value !== undefined) mergeField(field, target, value, 0);
}

/**
 * Sets the masked fields of `target` to those of `source`, and returns `target`. A scalar that `source` lacks
 * is cleared. Messages and maps are merged and lists appended, unless the options say to replace them.
 * Without a mask, all fields of `source` count. The result shares nothing with `source`. If the message does
 * not have a path, it throws CodecError and leaves `target` unchanged.
 */
export function mergeByMask<T, Init>(
  type: MessageType<T, Init>,
  target: T,
  source: Init,
  mask: MaskLike | undefined,
  options: MaskMergeOptions = {},
): T {
  const any = type as AnyType;
  const all = (): Node[] =>
    fieldsOf(any)
      .filter((field) => fieldValue(source as object, field) !== undefined)
      .map((field) => ({ field, inside: undefined }));
  const nodes = mask === undefined ? all() : [...treeOf(any, mask).values()];
  for (const node of nodes) mergeNode(node, target as Mutable, source as object, options);
  return target;
}
