/**
 * Options as they stand in a .proto, custom ones too where their extensions are declared. Used by `rdma-rpc
 * describe`.
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

/** `name = value`, one each; values of messages over several lines. */
export function optionsOf({ kind, proto }: Optioned, registry: FileRegistry): string[] {
  if (proto.options === undefined) return [];
  // One entry begins on each line that is not indented; a message ends with a brace of its own.
  const text = toText(schemas[kind] as DescMessage, proto.options, { registry });
  const entries = text.match(/^[\w[].*(?:(?<=\{)\n(?: .*\n)*\})?$/gm) ?? [];
  return entries.map((entry) => {
    const [, name = '', value = ''] = /^(\[[^\]]*\]|\w+):? ([\s\S]*)$/.exec(entry) ?? [];
    return `${name.replace(/^\[(.*)\]$/, '($1)')} = ${value}`;
  });
}

/** As statements inside of braces. */
export const optionLines = (of: Optioned, registry: FileRegistry): string[] =>
  optionsOf(of, registry).map((option) => `option ${option};`);

/** Behind a field or a value: ` [a = 1, b = 2]`, empty for none. */
export function inBrackets(options: readonly string[]): string {
  return options.length === 0 ? '' : ` [${options.join(', ')}]`;
}
