/**
 * Emits the table of a message's fields, for JSON, equality and similar code. It takes a few bytes per field,
 * and calls do not use it.
 */
import { jsonNameOf, keyOf } from '../../../runtime/codec/fields.ts';
import type { Field, Message } from '../../model/model.ts';
import { quote } from '../scalar.ts';
import type { FileScope } from '../scope.ts';

/**
 * Returns whether a field is a group in the sense of proto2. Such a field is named like its message, which is
 * declared beside it. Text format calls the field by the message's name.
 */
function isGroup({ name, fullName, type, delimited }: Field): boolean {
  if (!delimited || type.kind !== 'message') return false;
  const at = type.fullName.lastIndexOf('.') + 1;
  return (
    type.fullName.slice(at).toLowerCase() === name &&
    type.fullName.slice(0, at) === fullName.slice(0, fullName.length - name.length)
  );
}

/** Properties that do not follow from the field's name. */
function apart(field: Field): string | undefined {
  const { name, key, jsonName, type, array } = field;
  const entries: string[] = [];
  if (key !== keyOf(name)) entries.push(`key: ${quote(key)}`);
  if (jsonName !== jsonNameOf(name)) entries.push(`jsonName: ${quote(jsonName)}`);
  if (type.kind === 'scalar' && type.jstype !== 'bigint') entries.push(`jstype: ${quote(type.jstype)}`);
  if (type.kind === 'enum' && type.closed) entries.push('closed: true');
  if (isGroup(field)) entries.push('group: true');
  if (array !== undefined) entries.push(`array: ${quote(array)}`);
  return entries.length === 0 ? undefined : `{ ${entries.join(', ')} }`;
}

function presence({ presence, type }: Field): string {
  const usual = type.kind === 'message' ? 'optional' : 'implicit';
  return presence === usual ? '' : presence;
}

/**
 * Returns one word of the text that the runtime's `fieldEntries` parses. Adds to `more` the parts that have
 * no text form, such as the codec of a message.
 */
function entry(field: Field, more: string[], scope: FileScope): string {
  const { name, type, oneof, mapKey } = field;
  if (type.kind !== 'scalar') more.push(scope.value(type));
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

/** Returns the last arguments of `$.generatedType`. */
export function emitFields(message: Message, scope: FileScope): string {
  const more: string[] = [];
  const words = message.fields.map((field) => entry(field, more, scope));
  const reserved = message.reserved.length === 0 ? '' : `, ${quote(message.reserved.join(' '))}`;
  const types = more.length > 0 ? `, () => [${more.join(', ')}]` : reserved === '' ? '' : ', undefined';
  return `${quote(words.join(' '))}${types}${reserved}`;
}
