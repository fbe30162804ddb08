/**
 * Computes the room for the parts of a message's encoding that do not depend on its values: tags, and numbers
 * at their maximum length. `encodeTo` checks once whether all these parts fit. Each value of varying length
 * then has to leave room for the parts that follow it. `bound` uses the same counting rules, so the room that
 * it returns is sufficient.
 */
import type { Field } from '../../model/model.ts';
import { formOf, packedPrimitive, scalarForm, tagBytes, wireTypeOf } from '../scalar.ts';
import type { Run } from './runs.ts';

/**
 * Maximum size of a length prefix. One byte is kept free in front of the content. The remaining bytes are
 * needed when the content turns out to be longer.
 */
export const lengthBytes = 5;
export const widening = lengthBytes - 1;

export function tagSize(field: Field): number {
  return tagBytes(field.number, wireTypeOf(field.type)).length;
}

/** Returns the maximum size of a value, or 0 when the size varies. */
export function fixed(field: Field): number {
  return formOf(field.type)?.size ?? 0;
}

/** Returns the size of one value with its tag, without the varying part. */
function single(field: Field): number {
  const tag = tagSize(field);
  if (field.type.kind === 'message') return field.delimited ? 2 * tag : tag + lengthBytes;
  return tag + fixed(field);
}

/**
 * Returns the size of an entry of a map: length, tags of key and value, and the key and the value if they are
 * numbers.
 */
function entry(field: Field): number {
  const value = field.type.kind === 'message' ? lengthBytes : fixed(field);
  return tagSize(field) + lengthBytes + 2 + scalarForm(field.mapKey ?? 'string').size + value;
}

/**
 * Returns the fixed size of an element or entry, for lists whose room is checked as a whole. Returns 0 when
 * each element checks its own room.
 */
export function listed(field: Field): number {
  if (field.presence === 'map')
    return scalarForm(field.mapKey ?? 'string').size > 0 && fixed(field) > 0 ? entry(field) : 0;
  if (field.presence !== 'repeated' || fixed(field) === 0) return 0;
  return field.packed ? fixed(field) : single(field);
}

/** Returns the size of an element or entry without its varying parts. */
export function element(field: Field): number {
  return field.presence === 'map' ? entry(field) : single(field);
}

/**
 * Returns the minimum room of the field. For a list it is the room of one further element, so that writing an
 * element leaves room for the next tag.
 */
export function fieldRoom(field: Field): number {
  if (field.presence !== 'map' && field.presence !== 'repeated') return single(field);
  if (listed(field) === 0) return element(field);
  if (field.presence === 'map' || !field.packed) return 0;
  return tagSize(field) + (packedPrimitive(field) === undefined ? lengthBytes : 0);
}

/** Only one field of a oneof is present. */
export function runRoom({ oneof, fields }: Run): number {
  const rooms = fields.map(fieldRoom);
  return oneof === undefined ? rooms.reduce((sum, room) => sum + room, 0) : Math.max(...rooms);
}

export function roomOf(runs: readonly Run[]): number {
  return runs.reduce((sum, run) => sum + runRoom(run), 0);
}
