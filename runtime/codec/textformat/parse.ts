/** Parses text format. index.ts calls these functions. */
import { type AnyExtension, codecOf } from '../extension.ts';
import { type Field, fieldsOf, zeroOf } from '../fields.ts';
import { nestingMax } from '../limits.ts';
import { newMap } from '../message.ts';
import { arrayFromBytes } from '../typed-array.ts';
import type { MessageType } from '../types.ts';
import type { Registry } from '../wkt/any.ts';
import { TextLexer } from './lexer.ts';
import { fieldsByTextName } from './names.ts';
import { readScalar } from './scalar.ts';

type Message = { [key: string]: unknown };

class Parser {
  readonly #lexer: TextLexer;
  readonly #registry: Registry | undefined;

  constructor(lexer: TextLexer, registry: Registry | undefined) {
    this.#lexer = lexer;
    this.#registry = registry;
  }

  /** Reads fields up to and including `end`, or to the end of the text. */
  message(type: MessageType<object>, end: '}' | '>' | '', depth: number): object {
    const lexer: TextLexer = this.#lexer;
    if (depth > nestingMax) lexer.fail(`messages are nested more than ${nestingMax} deep`);
    const message = type.create() as Message;
    const seen = new Set<Field>();
    const extended = new Map<AnyExtension, unknown>();
    while (end === '' ? lexer.token.kind !== 'end' : !lexer.accept(end)) {
      if (lexer.is('[')) this.#bracketed(type, message, extended, depth);
      else this.#named(type, message, seen, depth);
      if (!lexer.accept(',')) lexer.accept(';');
    }
    for (const [extension, value] of extended) extension.set(message, value);
    return message;
  }

  #named(type: MessageType<object>, message: Message, seen: Set<Field>, depth: number): void {
    const lexer: TextLexer = this.#lexer;
    const { token } = lexer;
    if (token.kind !== 'name') lexer.expected('the name of a field');
    const field = fieldsByTextName(type).get(token.text);
    if (field === undefined) {
      if (type.reserved?.split(' ').includes(token.text) !== true)
        lexer.fail(`${type.typeName} has no field ${token.text}`);
      lexer.next();
      this.#passOver(depth);
      return;
    }
    lexer.next();
    const value = this.#value(field, depth, message[field.key]);
    if (field.presence === 'repeated' || field.presence === 'map') {
      message[field.key] = value;
      return;
    }
    if (seen.has(field)) lexer.fail(`${token.text} appears twice`, token.at);
    seen.add(field);
    if (field.oneof === undefined) message[field.key] = value;
    else {
      const chosen = message[field.oneof] as { readonly case?: string } | undefined;
      if (chosen?.case !== undefined)
        lexer.fail(`${token.text} and ${chosen.case} are of the same oneof`, token.at);
      message[field.oneof] = { case: field.key, value };
    }
  }

  /** Skips the value of a reserved field, which may be anything that has the form of a value. */
  #passOver(depth: number): void {
    const lexer: TextLexer = this.#lexer;
    if (depth > nestingMax) lexer.fail(`messages are nested more than ${nestingMax} deep`);
    const colon = lexer.accept(':');
    if (lexer.is('[')) this.#list(() => this.#passOverOne(depth));
    else if (colon || lexer.is('{') || lexer.is('<')) this.#passOverOne(depth);
    else lexer.expected(':');
  }

  #passOverOne(depth: number): void {
    const lexer: TextLexer = this.#lexer;
    const end = lexer.is('{') ? '}' : lexer.is('<') ? '>' : '';
    if (end !== '') {
      lexer.next();
      while (!lexer.accept(end)) {
        if (lexer.accept('[')) while (!lexer.accept(']')) this.#anyToken();
        else if (lexer.token.kind === 'name' || lexer.token.kind === 'int') lexer.next();
        else lexer.expected('the name of a field');
        this.#passOver(depth + 1);
        if (!lexer.accept(',')) lexer.accept(';');
      }
      return;
    }
    if (lexer.token.kind === 'string') while (lexer.token.kind === 'string') lexer.next();
    else {
      lexer.accept('-');
      if (lexer.token.kind === 'symbol') lexer.expected('a value');
      this.#anyToken();
    }
  }

  #anyToken(): void {
    if (this.#lexer.token.kind === 'end') this.#lexer.expected('a value');
    this.#lexer.next();
  }

  /** Reads `[shop.v1.discount]: 5`, or `[type.googleapis.com/shop.v1.Order] { … }` inside an Any. */
  #bracketed(
    type: MessageType<object>,
    message: Message,
    extended: Map<AnyExtension, unknown>,
    depth: number,
  ): void {
    const lexer: TextLexer = this.#lexer;
    const { at } = lexer.next();
    let name = '';
    while (!lexer.accept(']')) {
      const { kind, text } = lexer.token;
      if (kind !== 'name' && kind !== 'int' && !/^[./-]$/.test(text)) lexer.expected('a name in brackets');
      name += lexer.next().text;
    }
    if (name.includes('/')) {
      this.#any(type, message, name, at, depth);
      return;
    }
    const extension = this.#registry?.extension(name);
    if (extension === undefined) lexer.fail(`extension ${name} is not in the registry (option registry)`, at);
    if (extension.extends !== type.typeName)
      lexer.fail(`${name} is an extension of ${extension.extends}`, at);
    const field = fieldsOf(codecOf(extension))[0] as Field;
    if (extended.has(extension) && field.presence !== 'repeated') lexer.fail(`${name} appears twice`, at);
    extended.set(extension, this.#value(field, depth, extended.get(extension)));
  }

  #any(type: MessageType<object>, message: Message, url: string, at: number, depth: number): void {
    const lexer: TextLexer = this.#lexer;
    if (type.typeName !== 'google.protobuf.Any')
      lexer.fail(`${type.typeName} is not google.protobuf.Any`, at);
    if (message.typeUrl !== '') lexer.fail('an Any contains only one message', at);
    const content = this.#registry?.find(url.slice(url.lastIndexOf('/') + 1));
    if (content === undefined) lexer.fail(`type ${url} is not in the registry (option registry)`, at);
    lexer.accept(':');
    message.typeUrl = url;
    message.value = content.encode(this.#block(content, depth));
  }

  #block(type: MessageType<object>, depth: number): object {
    const lexer: TextLexer = this.#lexer;
    if (lexer.accept('{')) return this.message(type, '}', depth + 1);
    if (lexer.accept('<')) return this.message(type, '>', depth + 1);
    return lexer.expected('{');
  }

  /**
   * Reads the next value and returns the new value of the field. `before` is the old value, to which lists
   * and maps are added.
   */
  #value(field: Field, depth: number, before: unknown): unknown {
    const lexer: TextLexer = this.#lexer;
    const nests = field.message !== undefined || field.presence === 'map';
    if (!lexer.accept(':') && !nests) lexer.expected(':');
    if (field.presence !== 'repeated' && field.presence !== 'map') return this.#single(field, depth);
    const values = this.#list(() =>
      field.presence === 'map' ? this.#entry(field, depth) : this.#single(field, depth),
    );
    if (field.presence === 'repeated') return [...((before as unknown[]) ?? []), ...values];
    const map = (before as Message | undefined) ?? newMap<Message>();
    for (const [key, value] of values as [string, unknown][]) map[key] = value;
    return map;
  }

  #list<V>(read: () => V): V[] {
    const lexer: TextLexer = this.#lexer;
    if (!lexer.accept('[')) return [read()];
    const values: V[] = [];
    if (lexer.accept(']')) return values;
    do values.push(read());
    while (lexer.accept(','));
    lexer.expect(']');
    return values;
  }

  #single(field: Field, depth: number): unknown {
    if (field.message !== undefined) return this.#block(field.message, depth);
    const value = readScalar(this.#lexer, field.scalar, field);
    return field.array === undefined ? value : arrayFromBytes(field.array, value as Uint8Array, field.name);
  }

  /** Reads a map entry, a message with `key` and `value`. */
  #entry(field: Field, depth: number): [key: string, value: unknown] {
    const lexer: TextLexer = this.#lexer;
    const end = lexer.is('<') ? '>' : '}';
    if (!lexer.accept('<')) lexer.expect('{');
    const keyType = field.mapKey ?? 'string';
    const found = new Map<string, unknown>();
    while (!lexer.accept(end)) {
      const { kind, text, at } = lexer.next();
      if (kind !== 'name' || (text !== 'key' && text !== 'value'))
        lexer.fail('an entry of a map has only the fields key and value', at);
      if (found.has(text)) lexer.fail(`${text} appears twice`, at);
      const nests = text === 'value' && field.message !== undefined;
      if (!lexer.accept(':') && !nests) lexer.expected(':');
      found.set(
        text,
        text === 'value'
          ? this.#single(field, depth + 1)
          : readScalar(lexer, keyType, { enum: undefined, closed: false, jstype: 'string' }),
      );
      if (!lexer.accept(',')) lexer.accept(';');
    }
    const noKey = keyType === 'string' ? '' : keyType === 'bool' ? 'false' : '0';
    const noValue = () => field.message?.create() ?? zeroOf(field);
    return [String(found.get('key') ?? noKey), found.get('value') ?? noValue()];
  }
}

export function parseMessage(
  type: MessageType<object>,
  text: string,
  registry: Registry | undefined,
): object {
  return new Parser(new TextLexer(text, type.typeName), registry).message(type, '', 0);
}
