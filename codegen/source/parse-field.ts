/**
 * Parses fields, groups, maps and oneofs of messages, and the fields of extend statements. The parser calls
 * it.
 */

import { jsonNameOf } from '../../runtime/codec/fields.ts';
import {
  DescriptorProto,
  FieldDescriptorProto,
  type OneofDescriptorProto,
} from '../descriptor/descriptor.rdma.ts';
import { isScalarName, labels, mapEntryName, typeNumbers } from '../descriptor/types.ts';
import type { Token } from './lexer.ts';
import { join, type MessageParser, type Surroundings } from './parse-message.ts';
import { parseInlineOptions, parseOptionStatement } from './parse-option.ts';
import type { ParseState } from './parse-state.ts';
import type { OptionStatement } from './parsed.ts';

type Into = Surroundings & { readonly fields: FieldDescriptorProto[]; readonly fieldPath: string };
type IntoMessage = Into & { readonly oneofs: OneofDescriptorProto[]; readonly oneofPath: string };

const mapKeys = new Set([
  'int32',
  'int64',
  'uint32',
  'uint64',
  'sint32',
  'sint64',
  'fixed32',
  'fixed64',
  'sfixed32',
  'sfixed64',
  'bool',
  'string',
]);

export class FieldParser {
  readonly #state: ParseState;
  readonly #messages: MessageParser;

  constructor(state: ParseState, messages: MessageParser) {
    this.#state = state;
    this.#messages = messages;
  }

  field(into: Into, place: 'field' | 'oneof' | 'extension', oneofIndex?: number): void {
    const state = this.#state;
    const { stream } = state;
    const start = stream.peek();
    const path = `${into.fieldPath},${into.fields.length}`;
    const field = FieldDescriptorProto.create({ label: labels.optional });
    if (stream.is('map') && stream.is('<', 1)) {
      this.#map(into, path, start, place);
      return;
    }
    const label = this.#label(field, place);
    if (stream.is('group') && stream.peek(1).kind === 'name' && stream.is('=', 2)) {
      this.#group(into, path, start, field, oneofIndex);
      return;
    }
    const type = stream.dotted(label ? 'the type of the field' : 'a field');
    const name = stream.name("the field's name");
    if (isScalarName(type.text)) field.type = typeNumbers[type.text];
    else field.typeName = type.text;
    state.place(`${path},6`, type);
    this.#rest(into, path, start, field, name, oneofIndex, name.text);
    stream.expect(';');
    this.#finish(into, path, start, field, name);
  }

  /**
   * Reads the word in front of the type, and returns whether the field has such a word. It checks the rules
   * of each syntax.
   */
  #label(field: FieldDescriptorProto, place: 'field' | 'oneof' | 'extension'): boolean {
    const state = this.#state;
    const { stream, syntax } = state;
    const token = stream.peek();
    const { text } = token;
    if (text !== 'optional' && text !== 'required' && text !== 'repeated') {
      if (syntax === 'proto2' && place !== 'oneof' && (stream.is('.') || stream.peek(1).kind === 'name'))
        stream.reporter.report(token, 'proto2 fields begin with optional, required or repeated');
      return false;
    }
    stream.next();
    field.label = labels[text];
    if (place === 'oneof') stream.reporter.report(token, `a field of a oneof is never ${text}`);
    else if (state.isEdition && text !== 'repeated')
      stream.reporter.report(
        token,
        `editions have no ${text}: write option features.field_presence = ${text === 'optional' ? 'EXPLICIT' : 'LEGACY_REQUIRED'}`,
      );
    else if (text === 'required' && syntax === 'proto3')
      stream.reporter.report(token, 'proto3 has no required fields');
    else if (text === 'required' && place === 'extension')
      stream.reporter.report(token, 'an extension cannot be required');
    if (text === 'optional' && syntax === 'proto3' && place !== 'oneof') field.proto3Optional = true;
    return true;
  }

  /** Parses `= number [options]`. `default` and `json_name` are not options but parts of the descriptor. */
  #rest(
    into: Into,
    path: string,
    start: Token,
    field: FieldDescriptorProto,
    name: Token,
    oneofIndex: number | undefined,
    text: string,
  ): void {
    const { stream } = this.#state;
    stream.expect('=');
    const { token, value } = stream.integer("the field's number");
    field.name = text;
    field.number = value;
    field.jsonName = jsonNameOf(text);
    if (oneofIndex !== undefined) field.oneofIndex = oneofIndex;
    this.#state.place(`${path},1`, name);
    this.#state.place(`${path},3`, token);
    this.#state.place(path, start);
    const statements = parseInlineOptions(stream).filter(
      (statement) => !this.#special(field, path, statement),
    );
    this.#state.options('FieldOptions', field, into.scope, statements);
  }

  #special(field: FieldDescriptorProto, path: string, { parts, value }: OptionStatement): boolean {
    const [part] = parts;
    if (part === undefined || parts.length > 1 || part.extension) return false;
    if (part.name === 'json_name') {
      if (value.kind !== 'string') this.#state.stream.fail(value.token, 'json_name must be a string');
      field.jsonName = value.bytes.toString();
      this.#state.place(`${path},10`, value.token);
      return true;
    }
    if (part.name !== 'default') return false;
    if (value.kind === 'list' || value.kind === 'message')
      this.#state.stream.fail(value.token, 'a default is a single value');
    this.#state.defaults.set(field, value);
    this.#state.place(`${path},7`, value.token);
    return true;
  }

  /**
   * Adds the field to its message after all parts of the field have been read, so that its comments are
   * known.
   */
  #finish(into: Into, path: string, start: Token, field: FieldDescriptorProto, name: Token): void {
    this.#state.element(path, start, name);
    into.fields.push(field);
  }

  #group(
    into: Into,
    path: string,
    start: Token,
    field: FieldDescriptorProto,
    oneofIndex: number | undefined,
  ): void {
    const state = this.#state;
    const { stream } = state;
    const keyword = stream.next();
    const name = stream.name("the group's name");
    if (state.syntax !== 'proto2')
      stream.reporter.report(
        keyword,
        state.isEdition
          ? 'editions have no groups: write a message and option features.message_encoding = DELIMITED'
          : 'proto3 has no groups',
      );
    else if (!/^[A-Z]/.test(name.text))
      stream.reporter.report(name, "a group's name begins with a capital letter");
    field.type = typeNumbers.group;
    field.typeName = name.text;
    state.place(`${path},6`, name);
    this.#rest(into, path, start, field, name, oneofIndex, name.text.toLowerCase());
    stream.expect('{');
    const messagePath = `${into.messagePath},${into.messages.length}`;
    const message = DescriptorProto.create({ name: name.text });
    into.messages.push(message);
    this.#finish(into, path, start, field, name);
    state.element(messagePath, start, name);
    this.#messages.body(message, messagePath, join(into.scope, name.text));
  }

  #map(into: Into, path: string, start: Token, place: string): void {
    const state = this.#state;
    const { stream } = state;
    stream.next();
    stream.expect('<');
    const key = stream.name("the type of the map's keys");
    if (!mapKeys.has(key.text)) stream.fail(key, `${key.text} cannot be the key of a map`);
    stream.expect(',');
    if (stream.is('map') && stream.is('<', 1))
      stream.fail(stream.peek(), 'the values of a map cannot be maps; put the inner one into a message');
    const type = stream.dotted("the type of the map's values");
    stream.expect('>');
    const name = stream.name("the field's name");
    if (place !== 'field')
      stream.fail(start, place === 'oneof' ? 'a oneof cannot have a map' : 'an extension cannot be a map');
    const entry = mapEntryName(name.text);
    const field = FieldDescriptorProto.create({
      label: labels.repeated,
      type: typeNumbers.message,
      typeName: entry,
    });
    this.#rest(into, path, start, field, name, undefined, name.text);
    stream.expect(';');
    const scalar = isScalarName(type.text) ? { type: typeNumbers[type.text] } : { typeName: type.text };
    const entryPath = `${into.messagePath},${into.messages.length}`;
    for (const each of [entryPath, `${entryPath},1`, `${entryPath},2,1,6`, `${path},6`])
      state.place(each, type);
    into.messages.push(
      DescriptorProto.create({
        name: entry,
        field: [
          {
            name: 'key',
            number: 1,
            label: labels.optional,
            type: typeNumbers[key.text as 'string'],
            jsonName: 'key',
          },
          { name: 'value', number: 2, label: labels.optional, ...scalar, jsonName: 'value' },
        ],
        // This is MessageOptions.map_entry = true.
        options: Uint8Array.of(0x38, 1),
      }),
    );
    this.#finish(into, path, start, field, name);
  }

  oneof(into: IntoMessage): void {
    const state = this.#state;
    const { stream } = state;
    const start = stream.next();
    const name = stream.name("the oneof's name");
    const index = into.oneofs.length;
    const path = `${into.oneofPath},${index}`;
    const oneof: OneofDescriptorProto = { name: name.text };
    into.oneofs.push(oneof);
    stream.expect('{');
    state.element(path, start, name);
    const before = into.fields.length;
    const statements: OptionStatement[] = [];
    state.block(() => {
      if (stream.is('option') && !stream.is('=', 2)) statements.push(parseOptionStatement(stream));
      else this.field(into, 'oneof', index);
    });
    if (into.fields.length === before && !stream.reporter.failed)
      stream.reporter.report(name, `oneof ${name.text} has no fields`);
    state.options('OneofOptions', oneof, into.scope, statements);
  }

  /**
   * Every `optional` field of proto3 is the only field of an implicit oneof. These oneofs follow the declared
   * oneofs.
   */
  syntheticOneofs(message: DescriptorProto): void {
    const taken = new Set([...message.field, ...message.oneofDecl].map(({ name }) => name));
    for (const field of message.field) {
      if (field.proto3Optional !== true) continue;
      let name = field.name?.startsWith('_') ? field.name : `_${field.name}`;
      while (taken.has(name)) name = `X${name}`;
      taken.add(name);
      field.oneofIndex = message.oneofDecl.length;
      message.oneofDecl.push({ name });
    }
  }
}
