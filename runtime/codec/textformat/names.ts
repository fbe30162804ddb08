/**
 * Names of fields in text format. A group is called by the name of its message. print.ts and parse.ts use
 * this file.
 */
import { type Field, fieldsOf } from '../fields.ts';
import type { MessageType } from '../types.ts';

export function textName({ name, group, message }: Field): string {
  return group && message !== undefined
    ? message.typeName.slice(message.typeName.lastIndexOf('.') + 1)
    : name;
}

const known = new WeakMap<MessageType<object>, ReadonlyMap<string, Field>>();

/** Returns the fields of a type by their names in text format; a group has two names. */
export function fieldsByTextName(type: MessageType<object>): ReadonlyMap<string, Field> {
  let byName = known.get(type);
  if (byName === undefined) {
    const fields = fieldsOf(type);
    byName = new Map([
      ...fields.map((field) => [field.name, field] as const),
      ...fields.map((field) => [textName(field), field] as const),
    ]);
    known.set(type, byName);
  }
  return byName;
}
