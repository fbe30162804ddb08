/**
 * Interprets options: looks up `option (a.b).c = 5` in the messages and extensions that declare options,
 * checks the value, and encodes it for the descriptor. The linker calls it for every element that has
 * options.
 */

import { typeName } from '../descriptor/types.ts';
import { suggestion } from '../diagnostic.ts';
import type { DeclaredKind, Schema, SchemaFile } from '../link/schema.ts';
import { descriptorPath } from '../source/files.ts';
import type { OptionStatement, OptionValue, PendingOptions, TextField } from '../source/parsed.ts';
import { floatOf, integerOf, integerRange } from './number.ts';
import { misplacedFeature } from './targets.ts';
import { fieldsOf, isRepeated, type OptionField, OptionTree, type TreeValue } from './tree.ts';

type Where = OptionValue['token'];

/** An error lists the values of an enum if the enum has at most this number of values. */
const enumNamesMax = 8;

class Interpreter {
  readonly #schema: Schema;
  readonly #file: SchemaFile;
  readonly #scope: string;
  /** The name of an options message, such as `MessageOptions`. */
  readonly #type: string;

  constructor(schema: Schema, file: SchemaFile, { scope, type }: PendingOptions) {
    this.#schema = schema;
    this.#file = file;
    this.#scope = scope;
    this.#type = type;
  }

  get #isEdition(): boolean {
    return this.#file.descriptor.syntax === 'editions';
  }

  #report(place: Where, message: string): undefined {
    this.#file.reporter.report(place, message);
    return undefined;
  }

  statement(root: OptionTree, { parts, value }: OptionStatement): void {
    let tree = root;
    for (const [i, part] of parts.entries()) {
      const field = this.#field(tree, part.name, part.extension, part.token, 'option');
      if (field === undefined) return;
      if (i === parts.length - 1) {
        const before = tree.values.get(field.descriptor.number ?? 0);
        if (before !== undefined && !isRepeated(field))
          this.#report(part.token, `option ${part.name} is set twice`);
        else this.#assign(tree, field, value, part.name);
        return;
      }
      // The unknown type has already been reported at the declaration.
      if (typeName(field.descriptor.type) === undefined) return;
      const message = this.#messageOf(field);
      if (message === undefined || isRepeated(field)) {
        this.#report(part.token, `option ${part.name} has no fields of its own`);
        return;
      }
      const list = tree.list(field);
      if (list.length === 0) list.push(new OptionTree(this.#schema, message));
      tree = list[0] as OptionTree;
    }
  }

  #messageOf({ descriptor }: OptionField): DeclaredKind<'message'> | undefined {
    return this.#schema.messageOf(descriptor.typeName ?? '');
  }

  #field(
    tree: OptionTree,
    name: string,
    extension: boolean,
    place: Where,
    what: string,
  ): OptionField | undefined {
    const { message } = tree;
    if (extension) {
      const hint = ': import the file that declares it';
      const found = this.#schema.resolve(this.#file, name, this.#scope, ['extension'], place, what, hint);
      // If the extended message is unknown, further checks are not possible.
      if (found === undefined || this.#schema.messageOf(found.descriptor.extendee ?? '') === undefined)
        return undefined;
      if (found.descriptor.extendee !== `.${message.fullName}`)
        return this.#report(
          place,
          `${found.fullName} extends ${found.descriptor.extendee?.slice(1)}, not ${message.fullName}`,
        );
      return { descriptor: found.descriptor, extension: found.fullName };
    }
    const fields = [...fieldsOf(this.#schema, message).values()].filter(
      (field) => field.extension === undefined,
    );
    // In text format a group is called by the name of its message.
    const found = fields.find(
      ({ descriptor }) =>
        descriptor.name === name ||
        (typeName(descriptor.type) === 'group' && descriptor.typeName?.endsWith(`.${name}`)),
    );
    if (name === 'features' && message.fullName === `google.protobuf.${this.#type}` && !this.#isEdition)
      return this.#report(
        place,
        `features are for editions; this file is ${this.#file.descriptor.syntax ?? 'proto2'}`,
      );
    if (found !== undefined && message.fullName === 'google.protobuf.FeatureSet') {
      const allowed = misplacedFeature(name, this.#type);
      if (allowed !== undefined) return this.#report(place, `feature ${name} is for ${allowed} only`);
    }
    if (
      found !== undefined &&
      !(message.fullName.startsWith('google.protobuf.') && name === 'uninterpreted_option')
    )
      return found;
    // A file that could not be read may declare the field.
    if (message.file.standsIn === true) return undefined;
    const names = fields.map(({ descriptor }) => descriptor.name ?? '');
    return this.#report(place, `${message.fullName} has no ${what} ${name}${suggestion(name, names)}`);
  }

  #assign(tree: OptionTree, field: OptionField, value: OptionValue, name: string): void {
    if (value.kind === 'list') {
      if (!isRepeated(field)) this.#report(value.token, `${name} takes one value, not a list`);
      else for (const item of value.items) this.#assign(tree, field, item, name);
      return;
    }
    const converted = this.#value(field, value, name);
    if (converted !== undefined) tree.list(field).push(converted);
  }

  #value(field: OptionField, value: OptionValue, name: string): TreeValue | undefined {
    const { descriptor } = field;
    const type = typeName(descriptor.type);
    const wrong = (wanted: string): undefined => this.#report(value.token, `${name} takes ${wanted}`);
    switch (type) {
      case undefined:
        return undefined;
      case 'message':
      case 'group': {
        const message = this.#messageOf(field);
        return value.kind !== 'message' || message === undefined
          ? wrong('a message in braces')
          : this.#message(message, value.fields);
      }
      case 'string':
        return value.kind === 'string' ? value.bytes.toString('utf8') : wrong('a string in quotes');
      case 'bytes':
        return value.kind === 'string' ? Uint8Array.from(value.bytes) : wrong('a string in quotes');
      case 'bool':
        // Text format has more spellings of true and false than the language of .proto files.
        if (value.kind === 'name' && /^(true|t|True)$/.test(value.text)) return true;
        if (value.kind === 'name' && /^(false|f|False)$/.test(value.text)) return false;
        return wrong('true or false');
      case 'enum': {
        const found = this.#schema.get(descriptor.typeName ?? '');
        if (found?.kind !== 'enum') return undefined;
        const known = found.descriptor.value.find(
          (each) => value.kind === 'name' && each.name === value.text,
        );
        if (this.#type === 'FileOptions' && known?.name === 'LEGACY_REQUIRED' && name === 'field_presence')
          return this.#report(value.token, 'a file cannot make all of its fields LEGACY_REQUIRED');
        if (known !== undefined) return BigInt(known.number ?? 0);
        if (found.file.standsIn === true && value.kind === 'name') return undefined;
        const names = found.descriptor.value.map((each) => each.name ?? '');
        // The error lists all values of a small enum.
        const all = names.length > enumNamesMax ? '' : ` (${names.join(', ')})`;
        return wrong(`a value of ${found.fullName}${all}${suggestion(value.token.text, names)}`);
      }
      case 'float':
      case 'double':
        return floatOf(value, type) ?? wrong('a number');
      default: {
        const [least, most] = integerRange(type);
        return integerOf(value, type) ?? wrong(`a whole number from ${least} to ${most}`);
      }
    }
  }

  #message(message: DeclaredKind<'message'>, fields: readonly TextField[]): OptionTree {
    const tree = new OptionTree(this.#schema, message);
    for (const each of fields) {
      if (each.bracketed && each.name.includes('/')) this.#any(tree, each);
      else {
        const field = this.#field(tree, each.name, each.bracketed, each.token, 'field');
        if (field === undefined) continue;
        if (tree.values.has(field.descriptor.number ?? 0) && !isRepeated(field))
          this.#report(each.token, `${each.name} is set twice`);
        else this.#assign(tree, field, each.value, each.name);
      }
    }
    dropDefaults(tree, message);
    return tree;
  }

  /** Interprets `[type.googleapis.com/a.B] { … }` inside a google.protobuf.Any. */
  #any(tree: OptionTree, { name, token, value }: TextField): void {
    const [url, content] = [1, 2].map((number) => fieldsOf(this.#schema, tree.message).get(number));
    const type = this.#schema.messageOf(name.slice(name.lastIndexOf('/') + 1));
    if (tree.message.fullName !== 'google.protobuf.Any' || url === undefined || content === undefined)
      this.#report(token, `${tree.message.fullName} is not google.protobuf.Any`);
    else if (type === undefined) {
      if (!this.#schema.isIncomplete(this.#file)) this.#report(token, `unknown type ${name}`);
    } else if (value.kind !== 'message') this.#report(value.token, `${name} takes a message in braces`);
    else {
      tree.list(url).push(name);
      tree.list(content).push(this.#message(type, value.fields).encode());
    }
  }
}

/** Fields without presence are omitted when they have their default. */
function dropDefaults(tree: OptionTree, { file, descriptor }: DeclaredKind<'message'>): void {
  if (file.descriptor.syntax !== 'proto3' || descriptor.options?.[0] === 0x38) return;
  for (const [number, { field, list }] of tree.values) {
    const [value] = list;
    const implicit =
      field.extension === undefined && !isRepeated(field) && field.descriptor.oneofIndex === undefined;
    const isDefault =
      value === 0n ||
      value === false ||
      value === '' ||
      Object.is(value, 0) ||
      (value instanceof Uint8Array && value.length === 0);
    if (implicit && isDefault) tree.values.delete(number);
  }
}

export function interpretOptions(schema: Schema, file: SchemaFile, pending: PendingOptions): void {
  const message = schema.messageOf(`google.protobuf.${pending.type}`);
  if (message === undefined) {
    // The include directories contain a different file with that path.
    const token = pending.statements[0]?.parts[0]?.token ?? { text: '', line: 0, column: 0 };
    file.reporter.report(token, `the ${descriptorPath} of the include directories has no ${pending.type}`);
    return;
  }
  const tree = new OptionTree(schema, message);
  if (pending.holder.options !== undefined) tree.decode(pending.holder.options);
  const interpreter = new Interpreter(schema, file, pending);
  for (const statement of pending.statements) interpreter.statement(tree, statement);
  // The options are encoded without the faulty options, so that the following checks find other errors.
  pending.holder.options = tree.encode();
}
