/** The table of a message's fields, for JSON, equality and the like: a few bytes per field, read by nothing that calls need. */
import { jsonNameOf, keyOf } from '../../runtime/codec/fields.ts';
import type { Field, Message } from '../model/model.ts';
import { quote } from './scalar.ts';
import type { Scope } from './scope.ts';

/** What does not follow from the field's name. */
function apart({ name, key, jsonName, type }: Field): string | undefined {
  const entries: string[] = [];
  if (key !== keyOf(name)) entries.push(`key: ${quote(key)}`);
  if (jsonName !== jsonNameOf(name)) entries.push(`jsonName: ${quote(jsonName)}`);
  if (type.kind === 'scalar' && type.jstype !== 'bigint') entries.push(`jstype: ${quote(type.jstype)}`);
  return entries.length === 0 ? undefined : `{ ${entries.join(', ')} }`;
}

function presence({ presence, type }: Field): string {
  const usual = type.kind === 'message' ? 'optional' : 'implicit';
  return presence === usual ? '' : presence;
}

/** A word of the text that the runtime's `fieldEntries` reads; what is no text goes into `more`. */
function entry(field: Field, more: string[], scope: Scope): string {
  const { name, type, oneof, mapKey } = field;
  if (type.kind !== 'scalar') more.push(scope.type(type));
  const rest = apart(field);
  if (rest !== undefined) more.push(rest);
  const kind = type.kind === 'scalar' ? type.scalar : '*';
  const cells = [
    name,
    kind,
    presence(field),
    mapKey ?? oneof?.key ?? '',
    ...(rest === undefined ? [] : ['*']),
  ];
  return cells.join(':').replace(/:+$/, '');
}

/** The last arguments of `$.generatedType`. */
export function emitFields(message: Message, scope: Scope): string {
  const more: string[] = [];
  const words = message.fields.map((field) => entry(field, more, scope));
  const types = more.length === 0 ? '' : `, () => [${more.join(', ')}]`;
  return `${quote(words.join(' '))}${types}`;
}
