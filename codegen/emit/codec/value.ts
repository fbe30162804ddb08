/**
 * Emits the code of a single value in generated encoders and decoders, without its surroundings. It may be
 * the value of a field, an element, or a map entry. encode.ts, decode.ts, create.ts and map.ts call it.
 */
import type { Field } from '../../model/model.ts';
import { formOf, isPlainNumber, quote } from '../scalar.ts';
import type { FileScope } from '../scope.ts';
import { widening } from './room.ts';

/** Returns the end of the room when `free` bytes must remain behind it. */
export const limitOf = (free: number): string => (free === 0 ? 'limit' : `limit - ${free}`);

/**
 * Returns an expression that writes a value (with `tag` in front of it if given) at `at + skip`, leaves
 * `free` bytes behind the value and evaluates to the new end.
 */
export function writeValue(
  field: Field,
  value: string,
  skip: number,
  free: number,
  scope: FileScope,
  name = quote(field.fullName),
  tag?: number,
): string {
  const { type } = field;
  const offset = skip === 0 ? 'at' : `at + ${skip}`;
  const place = tag === undefined ? offset : `${offset}, ${tag}`;
  const kind = tag === undefined ? '' : 'Field';
  if (type.kind === 'message') {
    const start = `at + ${skip + (tag === undefined ? 1 : 2)}`;
    const content = nested(field, value, start, limitOf(free + widening), scope, name);
    // Arguments are evaluated from left to right, so `writer.held` is read before the message is written.
    return scope.mayBeOutOfLine(type)
      ? `${scope.local(`closeLength${kind}`)}(writer, ${place}, writer.held, ${content})`
      : `${scope.local(`closeSolid${kind}`)}(${scope.bytes()}, ${place}, ${content})`;
  }
  const form = formOf(type);
  switch (form?.primitive) {
    case 'String':
      return `${scope.local(`writeString${kind}`)}(writer, ${place}, ${value}, ${limitOf(free)}, ${name})`;
    case 'Bytes':
      if (field.array !== undefined) value = `$.octets(${value}, $.arrays.${field.array}, ${name})`;
      if (field.bulkThreshold !== undefined)
        return `${scope.local(`writeBulk${kind}`)}(writer, ${place}, ${value}, ${limitOf(free)}, ${name}, ${field.bulkThreshold})`;
      return `${scope.local(`writeBytes${kind}`)}(writer, ${place}, ${value}, ${limitOf(free)}, ${name})`;
    case 'Float':
    case 'Double':
      return `${scope.local(`write${form.primitive}${kind}`)}(writer, ${place}, ${value}, ${name})`;
    default:
      if (form !== undefined && isPlainNumber(type, form)) {
        return `${scope.local(`write${form.primitive}Number${kind}`)}(${scope.bytes()}, ${place}, ${value}, ${name})`;
      }
      return `${scope.local(`write${form?.primitive}${kind}`)}(${scope.bytes()}, ${place}, ${asBigint(field, value, name)}, ${name})`;
  }
}

function asBigint(field: Field, value: string, name: string): string {
  if (field.type.kind !== 'scalar' || formOf(field.type)?.type !== 'bigint') return value;
  if (field.type.jstype === 'string') return `$.bigintOfString(${value}, ${name})`;
  return field.type.jstype === 'number' ? `$.bigintOfNumber(${value}, ${name})` : value;
}

/** Returns an expression that writes a message's content and evaluates to its end. */
export function nested(
  { type, fullName }: Field,
  value: string,
  at: string,
  limit: string,
  scope: FileScope,
  name = quote(fullName),
): string {
  if (type.kind !== 'message') return '';
  return `${scope.call(type, 'encodeTo')}(${value}, writer, ${at}, ${limit}, depth + 1, ${name})`;
}

/** Returns the source text of the default of a value. */
export function zeroOf(field: Field, scope: FileScope): string {
  const { type } = field;
  if (field.array !== undefined) return `$.noArrays.${field.array}`;
  if (type.kind === 'message') return `${scope.call(type, 'create')}()`;
  if (type.kind === 'scalar' && formOf(type)?.type === 'bigint') {
    return type.jstype === 'bigint' ? '0n' : type.jstype === 'string' ? "'0'" : '0';
  }
  return formOf(type)?.zero ?? '0';
}

/** Returns an expression that reads a value at `at`. The position behind the value is then in `source.at`. */
export function read(field: Field, end: string, scope: FileScope): string {
  const { type } = field;
  const from = (primitive: string, more = '') =>
    `${scope.local(`read${primitive}`)}(source, at, ${end}${more})`;
  if (field.array !== undefined) return `$.readArray(source, at, ${end}, $.arrays.${field.array})`;
  const form = formOf(type);
  if (type.kind === 'scalar' && type.scalar === 'string' && !field.utf8) return from('LooseString');
  if (form === undefined || type.kind === 'enum') return from('Int32');
  const name = quote(field.fullName);
  if (isPlainNumber(type, form)) return from(`${form.primitive}Number`, `, ${name}`);
  const value = from(form.primitive);
  if (type.kind !== 'scalar' || form.type !== 'bigint') return value;
  if (type.jstype === 'string') return `String(${value})`;
  return type.jstype === 'number' ? `$.numberOfBigint(source, ${value}, ${name})` : value;
}
