/**
 * Options in .proto syntax, including custom options whose extensions are declared. `rdma-rpc describe` uses
 * this file.
 */
import {
  type DescMessage,
  EnumOptionsSchema,
  EnumValueOptionsSchema,
  FieldOptionsSchema,
  type FileRegistry,
  type Message,
  MessageOptionsSchema,
  MethodOptionsSchema,
  OneofOptionsSchema,
  ServiceOptionsSchema,
  toText,
} from '#protobuf';

const schemas = {
  message: MessageOptionsSchema,
  enum: EnumOptionsSchema,
  enum_value: EnumValueOptionsSchema,
  field: FieldOptionsSchema,
  extension: FieldOptionsSchema,
  oneof: OneofOptionsSchema,
  service: ServiceOptionsSchema,
  rpc: MethodOptionsSchema,
} as const;

interface Optioned {
  readonly kind: keyof typeof schemas;
  readonly proto: { readonly options?: Message | undefined };
}

/** Returns `name = value` for each option. Message values take several lines. */
export function optionsOf({ kind, proto }: Optioned, registry: FileRegistry): string[] {
  if (proto.options === undefined) return [];
  // Each unindented line begins an entry, except the closing brace of a message.
  const text = toText(schemas[kind] as DescMessage, proto.options, { registry });
  const entries = text.match(/^[\w[].*(?:(?<=\{)\n(?: .*\n)*\})?$/gm) ?? [];
  return entries.map((entry) => {
    const [, name = '', value = ''] = /^(\[[^\]]*\]|\w+):? ([\s\S]*)$/.exec(entry) ?? [];
    return `${name.replace(/^\[(.*)\]$/, '($1)')} = ${value}`;
  });
}

/** Returns the options as statements inside braces. */
export const optionLines = (of: Optioned, registry: FileRegistry): string[] =>
  optionsOf(of, registry).map((option) => `option ${option};`);

/** Returns the text behind a field or a value: ` [a = 1, b = 2]`, or an empty text. */
export function inBrackets(options: readonly string[]): string {
  return options.length === 0 ? '' : ` [${options.join(', ')}]`;
}
