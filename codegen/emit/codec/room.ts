/**
 * What of a message's encoding does not depend on its values: tags, and numbers at their longest. `encodeTo`
 * looks once whether there is room for all of it, and each value of a length of its own then has to leave
 * free what comes behind it. `bound` counts the same, so what it has asked for suffices.
 */
import type { Field } from '../../model/model.ts';
import { formOf, packedPrimitive, scalarForm, tagBytes, wireTypeOf } from '../scalar.ts';
import type { Run } from './runs.ts';

/**
 * Bytes of a length prefix at most. One is written in front of the content; the others are needed when it
 * turns out longer.
 */
export const lengthBytes = 5;
export const widening = lengthBytes - 1;

export function tagSize(field: Field): number {
  return tagBytes(field.number, wireTypeOf(field.type)).length;
}

/** Most bytes of a value; 0: depends on the value. */
export function fixed(field: Field): number {
  return formOf(field.type)?.size ?? 0;
}

/** One value with its tag, without what depends on the value. */
function single(field: Field): number {
  const tag = tagSize(field);
  if (field.type.kind === 'message') return field.delimited ? 2 * tag : tag + lengthBytes;
  return tag + fixed(field);
}

/** An entry of a map: length, tags of key and value, and both where they are numbers. */
function entry(field: Field): number {
  const value = field.type.kind === 'message' ? lengthBytes : fixed(field);
  return tagSize(field) + lengthBytes + 2 + scalarForm(field.mapKey ?? 'string').size + value;
}

/**
 * Each element or entry, where that depends on nothing; the room of the whole list is looked for at once. 0:
 * each looks for its own.
 */
export function listed(field: Field): number {
  if (field.presence === 'map')
    return scalarForm(field.mapKey ?? 'string').size > 0 && fixed(field) > 0 ? entry(field) : 0;
  if (field.presence !== 'repeated' || fixed(field) === 0) return 0;
  return field.packed ? fixed(field) : single(field);
}

/** What an element or entry takes besides its values of a length of its own. */
export function element(field: Field): number {
  return field.presence === 'map' ? entry(field) : single(field);
}

/**
 * What the field takes at least. Of a list, what one element more would take: writing one then leaves room
 * for the next one's tag.
 */
export function fieldRoom(field: Field): number {
  if (field.presence !== 'map' && field.presence !== 'repeated') return single(field);
  if (listed(field) === 0) return element(field);
  if (field.presence === 'map' || !field.packed) return 0;
  return tagSize(field) + (packedPrimitive(field) === undefined ? lengthBytes : 0);
}

/** Of the fields of a oneof only one is there. */
export function runRoom({ oneof, fields }: Run): number {
  const rooms = fields.map(fieldRoom);
  return oneof === undefined ? rooms.reduce((sum, room) => sum + room, 0) : Math.max(...rooms);
}

export function roomOf(runs: readonly Run[]): number {
  return runs.reduce((sum, run) => sum + runRoom(run), 0);
}
