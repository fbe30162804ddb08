/**
 * Messages in an Any and out of it. For applications and the JSON mapping; the codec itself never looks
 * inside.
 */
import { CodecError } from '../error.ts';
import { type AnyExtension, isExtension } from '../extension.ts';
import type { Any } from '../google/protobuf/any.rdma.ts';
import { isMessageType, type MessageType } from '../types.ts';

/** What type names in an Any start with unless somebody says otherwise. */
const typeUrlPrefix = 'type.googleapis.com/';

/** Full name of the message in an Any, '' when it is empty. */
export function anyTypeName(any: { readonly typeUrl: string }): string {
  return any.typeUrl.slice(any.typeUrl.lastIndexOf('/') + 1);
}

export function packAny<T, Init>(type: MessageType<T, Init>, message: Init): Any {
  return { typeUrl: typeUrlPrefix + type.typeName, value: type.encode(message) };
}

/** Whether the Any holds a message of that type. */
export function isAny<T, Init>(type: MessageType<T, Init>, any: Any): boolean {
  return anyTypeName(any) === type.typeName;
}

/** Undefined when the Any holds another type. Throws CodecError when its value is malformed. */
export function unpackAny<T, Init>(type: MessageType<T, Init>, any: Any): T | undefined {
  return isAny(type, any) ? type.decode(any.value) : undefined;
}

/** A message and its type. */
export interface Unpacked {
  readonly type: MessageType<object>;
  readonly message: object;
}

/** Message types by name: what an Any may hold. And extensions, for the JSON mapping. */
export interface Registry {
  /** The type of that full name (`kv.v1.Entry`), undefined when it is not in the registry. */
  find(typeName: string): MessageType<object> | undefined;
  /** Throws CodecError when the type is not in the registry or the value is malformed. */
  unpack(any: Any): Unpacked;
  /** The extension of that full name (`shop.v1.discount`). */
  extension(name: string): AnyExtension | undefined;
  /** The extension of a message, by their full name and number. */
  extensionOf(typeName: string, number: number): AnyExtension | undefined;
}

// biome-ignore lint/suspicious/noExplicitAny: messages of any types, whole modules of them
type Registered = MessageType<any, any> | AnyExtension | { readonly [name: string]: unknown };

/** Another one under the same key is a mistake. */
function addOnce<T>(map: Map<string, T>, key: string, value: T, what: string): void {
  const before = map.get(key);
  if (before !== undefined && before !== value)
    throw new RangeError(`rdma-rpc: two different ${what} ${key}`);
  map.set(key, value);
}

/**
 * A registry of message types, extensions, and of whole generated modules (`import * as shop from
 * './shop.rdma.ts'`), of which it takes both. Two of the same name are a mistake: RangeError.
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
