/**
 * Parses messages, enums and extensions, in a file or in a message. The parser calls it for each statement
 * that may be one of these.
 */
import {
  DescriptorProto,
  type EnumDescriptorProto,
  type FieldDescriptorProto,
} from '../descriptor/descriptor.rdma.ts';
import { fieldNumberMax } from '../descriptor/types.ts';
import { parseEnum } from './parse-enum.ts';
import { FieldParser } from './parse-field.ts';
import { parseInlineOptions, parseOptionStatement } from './parse-option.ts';
import { parseReserved } from './parse-reserved.ts';
import type { ParseState } from './parse-state.ts';
import type { OptionStatement } from './parsed.ts';

/** The place where declarations are added: the lists of a file or a message, and the paths of these lists. */
export interface Surroundings {
  /** Full name of the surrounding element. */
  readonly scope: string;
  readonly messages: DescriptorProto[];
  readonly messagePath: string;
  readonly enums: EnumDescriptorProto[];
  readonly enumPath: string;
  readonly extensions: FieldDescriptorProto[];
  readonly extensionPath: string;
}

export const join = (scope: string, name: string): string => (scope === '' ? name : `${scope}.${name}`);

/** Maximum nesting depth of messages, as in protoc and buf. */
const nestingMax = 31;

const visibilities: Readonly<Record<string, number>> = { local: 1, export: 2 };

export class MessageParser {
  readonly #state: ParseState;
  readonly #fields: FieldParser;
  #depth = 0;

  constructor(state: ParseState) {
    this.#state = state;
    this.#fields = new FieldParser(state, this);
  }

  /**
   * Parses a message, enum or extend statement. Returns false when the next token does not begin such a
   * statement.
   */
  declaration(into: Surroundings): boolean {
    const { stream } = this.#state;
    const start = stream.peek();
    let visibility: number | undefined;
    if ((stream.is('export') || stream.is('local')) && (stream.is('message', 1) || stream.is('enum', 1))) {
      if (!this.#state.since2024) stream.fail(start, `${start.text} needs edition 2024 or later`);
      visibility = visibilities[stream.next().text];
    }
    if (stream.is('message')) {
      stream.next();
      const path = `${into.messagePath},${into.messages.length}`;
      const name = stream.name("the message's name");
      const message = DescriptorProto.create({ name: name.text, visibility });
      into.messages.push(message);
      stream.expect('{');
      this.#state.element(path, start, name);
      this.body(message, path, join(into.scope, name.text));
      return true;
    }
    if (stream.is('enum')) {
      parseEnum(this.#state, into.enums, into.enumPath, into.scope, start, visibility);
      return true;
    }
    if (!stream.is('extend')) return false;
    this.#extend(into);
    return true;
  }

  #extend(into: Surroundings): void {
    const { stream } = this.#state;
    stream.next();
    const extendee = stream.dotted('the message to extend');
    stream.expect('{');
    this.#state.block(() => {
      const path = `${into.extensionPath},${into.extensions.length}`;
      this.#fields.field({ ...into, fields: into.extensions, fieldPath: into.extensionPath }, 'extension');
      const added = into.extensions.at(-1);
      if (added !== undefined && added.extendee === undefined) added.extendee = extendee.text;
      this.#state.place(`${path},2`, extendee);
    });
  }

  /** Parses everything between the braces of a message (or group). */
  body(message: DescriptorProto, path: string, scope: string): void {
    const state = this.#state;
    const { stream } = state;
    if (this.#depth >= nestingMax)
      stream.fail(stream.last, `messages are nested more than ${nestingMax} deep`);
    this.#depth++;
    const options: OptionStatement[] = [];
    const inside = {
      scope,
      messages: message.nestedType,
      messagePath: `${path},3`,
      enums: message.enumType,
      enumPath: `${path},4`,
      extensions: message.extension,
      extensionPath: `${path},6`,
      fields: message.field,
      fieldPath: `${path},2`,
      oneofs: message.oneofDecl,
      oneofPath: `${path},8`,
    };
    state.block(() => {
      switch (stream.peek().text) {
        case 'option':
          options.push(parseOptionStatement(stream));
          return;
        case 'reserved':
          return parseReserved(state, message, `${path},9`, `${path},10`, { max: fieldNumberMax, open: 1 });
        case 'extensions':
          return this.#extensionRanges(message, path, scope);
        case 'oneof':
          return this.#fields.oneof(inside);
        default:
          if (!this.declaration(inside)) this.#fields.field(inside, 'field');
      }
    });
    this.#fields.syntheticOneofs(message);
    state.options('MessageOptions', message, scope, options);
    this.#depth--;
  }

  #extensionRanges(message: DescriptorProto, path: string, scope: string): void {
    const { stream } = this.#state;
    stream.next();
    const first = message.extensionRange.length;
    do {
      const start = stream.integer('a field number');
      let last = start.value;
      if (stream.accept('to'))
        last = stream.accept('max') ? fieldNumberMax : stream.integer('a field number or max').value;
      this.#state.place(`${path},5,${message.extensionRange.length}`, start.token);
      message.extensionRange.push({ start: start.value, end: last + 1 });
    } while (stream.accept(','));
    const options = parseInlineOptions(stream);
    stream.expect(';');
    for (const range of message.extensionRange.slice(first))
      this.#state.options('ExtensionRangeOptions', range, scope, options);
  }
}
