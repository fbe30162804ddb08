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

function presence({ presence, type }: Field): string | undefined {
  const usual = type.kind === 'message' ? 'optional' : 'implicit';
  return presence === usual ? undefined : quote(presence);
}

function entry(field: Field, scope: Scope): string {
  const { type, oneof, mapKey } = field;
  const of = mapKey ?? oneof?.key;
  const cells = [
    quote(field.name),
    type.kind === 'scalar' ? quote(type.scalar) : scope.type(type),
    presence(field),
    of === undefined ? undefined : quote(of),
    apart(field),
  ];
  while (cells.at(-1) === undefined) cells.pop();
  return `[${cells.map((cell) => cell ?? 'undefined').join(', ')}]`;
}

export function emitFields(message: Message, scope: Scope): string {
  if (message.fields.length === 0) return '[]';
  return `[\n${message.fields.map((field) => `    ${entry(field, scope)},\n`).join('')}  ]`;
}
