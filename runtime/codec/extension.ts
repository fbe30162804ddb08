/**
 * Extensions: fields of a message that are declared outside of it. A message with extension ranges keeps
 * unknown fields as bytes. An extension reads its value out of these bytes and writes it back. Generated code
 * makes extensions, and applications use them.
 */

import { Source } from './memory/source.ts';
import { readTag, skipField } from './primitives/read.ts';
import type { MessageType } from './types.ts';
import { setUnknown, unknownOf } from './unknown.ts';

/** A message that keeps its unknown fields. */
export interface Extendable {
  $unknownFields?: Uint8Array | undefined;
}

/**
 * An extension of messages of type `Message`. Its values are stored in the message's `$unknownFields`, so
 * every `get` decodes them and every `set` encodes them.
 */
export interface Extension<Message extends Extendable, Value, Init = Value> {
  /** Full name, for example `shop.v1.discount`. */
  readonly name: string;
  /** Full name of the extended message. */
  readonly extends: string;
  readonly number: number;
  has(message: Message): boolean;
  /**
   * Returns the value, or undefined when it is absent. A repeated extension that is absent returns an empty
   * list. Throws CodecError when the bytes of the extension are malformed.
   */
  get(message: Message): Value;
  /** Replaces the value. Throws CodecError when the value does not fit. */
  set(message: Message, value: Init): void;
  clear(message: Message): void;
}

// biome-ignore lint/suspicious/noExplicitAny: an extension of any message
export type AnyExtension = Extension<any, unknown, unknown>;

/** The codec of a message with the extension as its only field, `value`. */
type ExtensionCodec = MessageType<{ value?: unknown }, { readonly value?: unknown }>;

/**
 * Returns the codec of an extension, for code that handles extensions of any type, such as JSON and the text
 * format.
 */
export function codecOf(extension: AnyExtension): ExtensionCodec {
  return (extension as AnyExtension & { readonly codec: ExtensionCodec }).codec;
}

/** Distinguishes an extension from other exports of a generated module. */
export function isExtension(value: unknown): value is AnyExtension {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { extends?: unknown }).extends === 'string' &&
    'codec' in value
  );
}

const source = new Source();

/**
 * Returns the field numbers in `bytes`, each once, in the order in which they appear. Throws CodecError for
 * malformed bytes.
 */
export function fieldNumbers(bytes: Uint8Array): ReadonlySet<number> {
  const numbers = new Set<number>();
  select(bytes, (number) => {
    numbers.add(number);
    return false;
  });
  return numbers;
}

/** Returns the fields of `bytes` for which `wanted` holds, or undefined when none does. */
function select(bytes: Uint8Array, wanted: (number: number) => boolean): Uint8Array | undefined {
  source.reset(bytes);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const start = at;
    const tag = readTag(source, at, bytes.length);
    at = skipField(source, tag, source.at, bytes.length, 0);
    if (wanted(tag >>> 3)) parts.push(bytes.subarray(start, at));
  }
  return parts.length === 0 ? undefined : join(parts);
}

function join(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * Makes an extension. `codec` belongs to a message whose only field is the extension, under the name `value`.
 */
export function extension<Message extends Extendable, Value, Init>(
  of: { readonly name: string; readonly extends: string; readonly number: number },
  codec: ExtensionCodec,
): Extension<Message, Value, Init> {
  const { number } = of;
  const clear = (message: Message): void => {
    const kept = unknownOf(message);
    const rest = kept === undefined ? undefined : select(kept, (each) => each !== number);
    if (rest === undefined) delete message.$unknownFields;
    else setUnknown(message, rest);
  };
  const made: Extension<Message, Value, Init> & { readonly codec: ExtensionCodec } = {
    ...of,
    codec,
    clear,
    has(message) {
      const kept = unknownOf(message);
      return kept !== undefined && select(kept, (each) => each === number) !== undefined;
    },
    get(message) {
      const kept = unknownOf(message);
      return (kept === undefined ? codec.create() : codec.decode(kept)).value as Value;
    },
    set(message, value) {
      const bytes = codec.encode({ value });
      clear(message);
      const kept = unknownOf(message);
      setUnknown(message, kept === undefined ? bytes : join([kept, bytes]));
    },
  };
  return made;
}
