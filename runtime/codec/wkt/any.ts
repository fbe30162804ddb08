/**
 * Packs messages into an Any and unpacks them. Applications and the JSON mapping use it; the codec itself
 * never looks inside an Any.
 */
import { CodecError } from '../error.ts';
import { type AnyExtension, isExtension } from '../extension.ts';
import type { Any } from '../google/protobuf/any.rdma.ts';
import { isMessageType, type MessageType } from '../types.ts';

/** Default prefix of type URLs. */
const typeUrlPrefix = 'type.googleapis.com/';

/** Returns the full name of the message in an Any, or '' when it is empty. */
export function anyTypeName(any: { readonly typeUrl: string }): string {
  return any.typeUrl.slice(any.typeUrl.lastIndexOf('/') + 1);
}

export function packAny<T, Init>(type: MessageType<T, Init>, message: Init): Any {
  return { typeUrl: typeUrlPrefix + type.typeName, value: type.encode(message) };
}

/** Returns whether the Any contains a message of type `type`. */
export function isAny<T, Init>(type: MessageType<T, Init>, any: Any): boolean {
  return anyTypeName(any) === type.typeName;
}

/**
 * Returns the message, or undefined when the Any contains another type. Throws CodecError when its value is
 * malformed.
 */
export function unpackAny<T, Init>(type: MessageType<T, Init>, any: Any): T | undefined {
  return isAny(type, any) ? type.decode(any.value) : undefined;
}

/** A message and its type. */
export interface Unpacked {
  readonly type: MessageType<object>;
  readonly message: object;
}

/** Finds message types by name, for the content of an Any, and extensions, for the JSON mapping. */
export interface Registry {
  /** Returns the type with that full name (`kv.v1.Entry`), or undefined when it is not in the registry. */
  find(typeName: string): MessageType<object> | undefined;
  /**
   * Returns the content of an Any. Throws CodecError when the type is not in the registry or the value is
   * malformed.
   */
  unpack(any: Any): Unpacked;
  /** Returns the extension with that full name (`shop.v1.discount`). */
  extension(name: string): AnyExtension | undefined;
  /** Returns the extension of a message by the message's full name and the number. */
  extensionOf(typeName: string, number: number): AnyExtension | undefined;
}

// biome-ignore lint/suspicious/noExplicitAny: messages of any types, whole modules of them
type Registered = MessageType<any, any> | AnyExtension | { readonly [name: string]: unknown };

/** Adds an entry. Throws for a different entry under the same key. */
function addOnce<T>(map: Map<string, T>, key: string, value: T, what: string): void {
  const before = map.get(key);
  if (before !== undefined && before !== value)
    throw new RangeError(`rdma-rpc: two different ${what} ${key}`);
  map.set(key, value);
}

/**
 * Makes a registry of message types, extensions and whole generated modules (`import * as shop from
 * './shop.rdma.ts'`). It takes the message types and extensions of a module. Throws RangeError for two
 * entries of the same name.
 */
export function createRegistry(...entries: readonly Registered[]): Registry {
  const types = new Map<string, MessageType<object>>();
  const extensions = new Map<string, AnyExtension>();
  const byNumber = new Map<string, AnyExtension>();
  const add = (entry: unknown): boolean => {
    if (isMessageType(entry)) addOnce(types, entry.typeName, entry, 'message types are called');
    else if (isExtension(entry)) {
      addOnce(extensions, entry.name, entry, 'extensions are called');
      addOnce(
        byNumber,
        `${entry.extends} ${entry.number}`,
        entry,
        'extensions have the same message and number:',
      );
    } else return false;
    return true;
  };
  for (const entry of entries) if (!add(entry)) for (const value of Object.values(entry)) add(value);
  return {
    find: (typeName) => types.get(typeName),
    extension: (name) => extensions.get(name),
    extensionOf: (typeName, number) => byNumber.get(`${typeName} ${number}`),
    unpack(any) {
      const name = anyTypeName(any);
      const type = types.get(name);
      if (type === undefined)
        throw new CodecError('google.protobuf.Any', `type ${JSON.stringify(name)} is not in the registry`);
      return { type, message: type.decode(any.value) };
    },
  };
}
