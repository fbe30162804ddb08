/**
 * Declarations as .proto text, made from descriptors, with their options and comments. `rdma-rpc describe`
 * and `call -v` use this file.
 */
import {
  type DescEnum,
  type DescExtension,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescOneof,
  type DescService,
  Edition,
  type FileRegistry,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from '#protobuf';
import { fieldNumberMax, typeName } from '../../../codegen/descriptor/types.ts';
import { jsonNameOf } from '../../../runtime/codec/fields.ts';
import { bytesOfQuoted, quoteBytes } from '../../../runtime/codec/textformat/escape.ts';
import { commentText } from './declaration-comments.ts';
import { inBrackets, optionLines, optionsOf } from './declaration-options.ts';
import type { Declared } from './registry.ts';

const plain = (name: string): string => name.replace(/^\./, '');
const indented = (text: string): string => text.replace(/^(?=.)/gm, '  ');
const block = (head: string, parts: readonly string[]): string =>
  parts.length === 0 ? `${head} {}` : `${head} {\n${indented(parts.join('\n'))}\n}`;

type AnyField = DescField | DescExtension;

/** Returns the declaration as .proto text. `alone` omits comments, and uses one line if possible. */
export function declarationText(desc: Declared, registry: FileRegistry, alone?: 'alone'): string {
  const comment = alone === undefined ? commentText(desc) : '';
  return `${comment}${new Declarations(registry).of(desc)}`;
}

class Declarations {
  readonly #registry: FileRegistry;

  constructor(registry: FileRegistry) {
    this.#registry = registry;
  }

  of(desc: Declared): string {
    switch (desc.kind) {
      case 'message':
        return this.#message(desc);
      case 'enum':
        return this.#enum(desc);
      case 'service':
        return this.#service(desc);
      case 'rpc':
        return this.#method(desc);
      case 'extension':
        return this.#extension(desc);
    }
  }

  #message(message: DescMessage): string {
    return block(`message ${message.name}`, this.#members(message));
  }

  #members(message: DescMessage): string[] {
    const { proto } = message;
    const groups = new Set(
      [...message.fields, ...message.nestedExtensions].filter(isGroup).map((field) => field.message),
    );
    return [
      ...optionLines(message, this.#registry),
      ...message.nestedMessages
        .filter((nested) => !groups.has(nested))
        .map((nested) => commentText(nested) + this.#message(nested)),
      ...message.nestedEnums.map((nested) => commentText(nested) + this.#enum(nested)),
      ...message.members.map((member) =>
        member.kind === 'oneof' ? this.#oneof(member) : this.#field(member),
      ),
      ...proto.extensionRange.map(({ start, end }) => `extensions ${range(start, end - 1)};`),
      ...reserved(
        proto.reservedRange.map(({ start, end }) => range(start, end - 1)),
        proto.reservedName,
      ),
      ...message.nestedExtensions.map((nested) => this.#extension(nested)),
    ];
  }

  #oneof(oneof: DescOneof): string {
    const fields = oneof.fields.map((field) => this.#field(field));
    return (
      commentText(oneof) + block(`oneof ${oneof.name}`, [...optionLines(oneof, this.#registry), ...fields])
    );
  }

  #field(field: AnyField): string {
    const { proto } = field;
    const options = [...defaultOf(field), ...jsonNameOption(field), ...optionsOf(field, this.#registry)];
    const tail = ` = ${field.number}${inBrackets(options)}`;
    const comment = commentText(field);
    if (isGroup(field)) {
      const group = field.message!;
      return comment + block(`${label(field)}group ${group.name}${tail}`, this.#members(group));
    }
    if (field.fieldKind !== 'map') return `${comment}${label(field)}${typeOf(proto)} ${proto.name}${tail};`;
    const [key, value] =
      field.parent?.proto.nestedType.find(({ name }) => plain(proto.typeName).endsWith(`.${name}`))?.field ??
      [];
    const types = key === undefined || value === undefined ? '' : `${typeOf(key)}, ${typeOf(value)}`;
    return `${comment}map<${types}> ${proto.name}${tail};`;
  }

  #extension(extension: DescExtension): string {
    return block(`extend ${extension.extendee.typeName}`, [this.#field(extension)]);
  }

  #enum(declared: DescEnum): string {
    const { proto } = declared;
    const values = declared.values.map(
      (value) =>
        `${commentText(value)}${value.name} = ${value.number}${inBrackets(optionsOf(value, this.#registry))};`,
    );
    const ranges = proto.reservedRange.map(({ start, end }) => range(start, end));
    return block(`enum ${declared.name}`, [
      ...optionLines(declared, this.#registry),
      ...values,
      ...reserved(ranges, proto.reservedName),
    ]);
  }

  #service(service: DescService): string {
    const methods = service.methods.map((method) => commentText(method) + this.#method(method));
    return block(`service ${service.name}`, [...optionLines(service, this.#registry), ...methods]);
  }

  #method(method: DescMethod): string {
    const { clientStreaming, serverStreaming } = method.proto;
    const side = (type: DescMessage, stream: boolean): string =>
      `(${stream ? 'stream ' : ''}${type.typeName})`;
    const head = `rpc ${method.name}${side(method.input, clientStreaming)} returns ${side(method.output, serverStreaming)}`;
    const options = optionLines(method, this.#registry);
    return options.length === 0 ? `${head};` : block(head, options);
  }
}

const isGroup = (field: AnyField): boolean => field.proto.type === Type.GROUP;
const range = (start: number, last: number): string =>
  start === last ? `${start}` : `${start} to ${last === fieldNumberMax ? 'max' : last}`;

function reserved(ranges: readonly string[], names: readonly string[]): string[] {
  const lists = [ranges, names.map((name) => JSON.stringify(name))];
  return lists.flatMap((list) => (list.length === 0 ? [] : `reserved ${list.join(', ')};`));
}

/** Returns the name of a scalar type, or the full name of a message or enum. */
function typeOf({ type, typeName: name }: AnyField['proto']): string {
  return name === '' ? (typeName(type) ?? '') : plain(name);
}

/** Returns the words in front of the type, followed by a space. */
function label({ proto, parent, kind, ...field }: AnyField): string {
  const file = kind === 'extension' ? (field as DescExtension).file : (parent as DescMessage).file;
  if (proto.label === Label.REPEATED) return 'repeated ';
  if (proto.label === Label.REQUIRED) return 'required ';
  if (proto.proto3Optional) return 'optional ';
  const inOneof = proto.oneofIndex !== undefined && Object.hasOwn(proto, 'oneofIndex');
  return file.edition === Edition.EDITION_PROTO2 && !inOneof ? 'optional ' : '';
}

function defaultText({ type, defaultValue }: AnyField['proto']): string {
  if (type === Type.STRING) return JSON.stringify(defaultValue);
  if (type !== Type.BYTES) return defaultValue;
  // The descriptor contains escaped bytes, but quotes within them may be unescaped.
  const bytes = bytesOfQuoted(defaultValue, 'replaced');
  return typeof bytes === 'string' ? '""' : quoteBytes(bytes);
}

/** Returns the explicit default, for proto2 and editions. */
function defaultOf({ proto }: AnyField): string[] {
  if (proto.defaultValue === '' || !Object.hasOwn(proto, 'defaultValue')) return [];
  return [`default = ${defaultText(proto)}`];
}

/** Returns the JSON name if it differs from the name that follows from the field's name. */
function jsonNameOption({ proto, kind }: AnyField): string[] {
  return kind === 'extension' || proto.jsonName === jsonNameOf(proto.name)
    ? []
    : [`json_name = ${JSON.stringify(proto.jsonName)}`];
}
