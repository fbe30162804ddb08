/**
 * Emits the `bound` function, which returns an upper bound of the encoding's size. The function visits values
 * in the order in which encode writes them. It does not check values, because encode always follows and
 * checks them. Therefore the primitives of `bound` need no field names.
 */
import type { Field, Message, Oneof } from '../../model/model.ts';
import { formOf, quote, scalarForm } from '../scalar.ts';
import type { FileScope, Parameter } from '../scope.ts';
import { element, fixed, listed, roomOf } from './room.ts';
import { fieldRuns } from './runs.ts';

/** Returns whether a field is a string, or a `bytes` field without a threshold of its own. */
function isPlain({ type, bulkThreshold }: Field): boolean {
  return type.kind !== 'message' && bulkThreshold === undefined;
}

/**
 * Returns an expression for the room that one value, which may be absent, needs in addition to the fixed room
 * of its field. `value` is an expression that can be evaluated twice.
 */
function valueBound(field: Field, value: string, scope: FileScope): string {
  const { type } = field;
  if (type.kind !== 'message') {
    if (formOf(type)?.type === 'string') return `${scope.local('sizeString')}(${value})`;
    if (isPlain(field)) return `${scope.local('sizeBytes')}(${value}, writer)`;
    return `$.sizeBulk(${value}, writer, ${field.bulkThreshold})`;
  }
  return `${scope.call(type, 'bound')}(${value === 'each' ? value : scope.sure(value)}, writer, depth + 1)`;
}

/**
 * The room of a field or oneof: an expression, or statements that add to `n` when the field needs a loop or a
 * choice.
 */
type Part = { readonly sum: string } | { readonly statements: string };

function repeated(field: Field, scope: FileScope): Part {
  const list = `m.${field.key}`;
  const isString = field.type.kind !== 'message' && formOf(field.type)?.type === 'string';
  if (isString) return { sum: `${scope.local('sizeStrings')}(${list}, ${element(field)})` };
  if (listed(field) > 0) return { sum: `${scope.local('sizeList')}(${list}, ${listed(field)})` };
  const value = valueBound(field, 'each', scope);
  const items = `${scope.local('itemsOf')}(${list})`;
  return { statements: `for (const each of ${items}) n += ${element(field)} + ${value};` };
}

/** Adds the keys and the fixed part of each entry, and then the values if their length varies. */
function map(field: Field, scope: FileScope): Part {
  const entries = `m.${field.key}`;
  const hasText = scalarForm(field.mapKey ?? 'string').size === 0;
  const keys = `${scope.local(hasText ? 'sizeKeys' : 'sizeMap')}(${entries}, ${element(field)})`;
  if (fixed(field) > 0) return { sum: keys };
  const values = `for (const each of ${scope.local('valuesOf')}(${entries})) n += ${valueBound(field, 'each', scope)};`;
  return { statements: `n += ${keys};\n  ${values}` };
}

/** Returns the room of adjacent fields of a oneof. */
function chosen(oneof: Oneof, fields: readonly Field[], scope: FileScope): Part {
  const value = `m.${oneof.key}`;
  const measured = oneof.fields.filter((field) => fixed(field) === 0);
  if (fields.length === measured.length && fields.every(isPlain))
    return { sum: `${scope.local('sizeChoice')}(${value}, writer)` };
  const bound = (field: Field) => valueBound(field, `${value}.value`, scope);
  const [first, second] = fields;
  if (first !== undefined && second === undefined)
    return { sum: `(${value}?.case === ${quote(first.key)} ? ${bound(first)} : 0)` };
  const cases = fields.map((field) => `case ${quote(field.key)}: n += ${bound(field)}; break;`);
  return { statements: `switch (${value}?.case) {\n    ${cases.join('\n    ')}\n  }` };
}

/**
 * Returns a single sum if possible, as it is for most messages. A compiler parses a sum faster than a
 * statement for each field.
 */
function add(room: number, parts: readonly Part[]): string {
  const sums = parts.map((part) => ('sum' in part ? part.sum : undefined));
  if (!sums.includes(undefined)) return `return ${[room, ...sums].join(' +\n    ')};`;
  const lines = parts.map((part) => ('sum' in part ? `n += ${part.sum};` : part.statements));
  return [`let n = ${room};`, ...lines, 'return n;'].join('\n  ');
}

export function emitBound(message: Message, scope: FileScope): string {
  const runs = fieldRuns(message);
  const parts: Part[] = [];
  for (const { oneof, fields } of runs) {
    if (oneof === undefined) {
      for (const field of fields) {
        if (field.presence === 'map') parts.push(map(field, scope));
        else if (field.presence === 'repeated') parts.push(repeated(field, scope));
        else if (fixed(field) === 0) parts.push({ sum: valueBound(field, `m.${field.key}`, scope) });
      }
      continue;
    }
    const measured = fields.filter((field) => fixed(field) === 0);
    if (measured.length > 0) parts.push(chosen(oneof, measured, scope));
  }
  if (message.keepsUnknown) parts.push({ sum: '$.boundUnknown(m)' });
  const parameters: Parameter[] = [
    ['m', message.init],
    ['writer', scope.alias('Writer')],
    ['depth', 'number', '0'],
  ];
  return `${scope.headOf(message, 'bound', parameters, 'number')}
  if (${scope.local('sizeless')}(m, writer, depth)) return 0;
  ${add(roomOf(runs), parts)}
}`;
}
