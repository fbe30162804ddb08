/**
 * Options in .proto syntax, including custom ones whose extensions are declared. Used by `rdma-rpc describe`.
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

/** `name = value` for each option; message values take several lines. */
export function optionsOf({ kind, proto }: Optioned, registry: FileRegistry): string[] {
  if (proto.options === undefined) return [];
  // Each unindented line begins an entry; a message ends with a brace of its own.
  const text = toText(schemas[kind] as DescMessage, proto.options, { registry });
  const entries = text.match(/^[\w[].*(?:(?<=\{)\n(?: .*\n)*\})?$/gm) ?? [];
  return entries.map((entry) => {
    const [, name = '', value = ''] = /^(\[[^\]]*\]|\w+):? ([\s\S]*)$/.exec(entry) ?? [];
    return `${name.replace(/^\[(.*)\]$/, '($1)')} = ${value}`;
  });
}

/** As statements inside braces. */
export const optionLines = (of: Optioned, registry: FileRegistry): string[] =>
  optionsOf(of, registry).map((option) => `option ${option};`);

/** Behind a field or a value: ` [a = 1, b = 2]`, or an empty text. */
export function inBrackets(options: readonly string[]): string {
  return options.length === 0 ? '' : ` [${options.join(', ')}]`;
}
