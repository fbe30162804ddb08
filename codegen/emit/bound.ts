/** The generated `bound` function: upper bound of the encoding, and the checks of kind. Visits values in the order in which encode writes them. */
import type { Field, Message, Oneof } from '../model/model.ts';
import { element, fixed, listed, roomOf } from './room.ts';
import { fieldRuns } from './runs.ts';
import { formOf, quote, scalarForm } from './scalar.ts';
import type { Parameter, Scope } from './scope.ts';

/** Expression for what one value takes besides the room that its field has in any case. `Field`: it may be absent. */
function valueBound(field: Field, value: string, scope: Scope, absent: '' | 'Field' = ''): string {
  const { type } = field;
  const name = quote(field.fullName);
  if (type.kind === 'message') return `${scope.call(type, 'bound')}(${value}, sink, depth + 1, ${name})`;
  if (formOf(type)?.type === 'string') return `${scope.local(`boundString${absent}`)}(${value}, ${name})`;
  if (field.bulkThreshold !== undefined) {
    const bulk = `$.boundBulk(${value}, sink, ${name}, ${field.bulkThreshold})`;
    return absent === '' ? bulk : `(${value} === undefined ? 0 : ${bulk})`;
  }
  return `${scope.local(`boundBytes${absent}`)}(${value}, sink, ${name})`;
}

/** What a field or oneof adds, as an expression, or as statements that add to `n` where there is a loop or a choice. */
type Part = { readonly sum: string; readonly isChoice?: true } | { readonly statements: string };

function singular(field: Field, scope: Scope): Part {
  const value = `m.${field.key}`;
  if (field.type.kind !== 'message') return { sum: valueBound(field, value, scope, 'Field') };
  return { sum: `${value} === undefined ? 0 : ${valueBound(field, value, scope)}`, isChoice: true };
}

function repeated(field: Field, scope: Scope): Part {
  const name = quote(field.fullName);
  const list = `m.${field.key}`;
  const isString = field.type.kind !== 'message' && formOf(field.type)?.type === 'string';
  if (isString) return { sum: `${scope.local('boundStrings')}(${list}, ${element(field)}, ${name})` };
  if (listed(field) > 0) return { sum: `${scope.local('boundList')}(${list}, ${listed(field)}, ${name})` };
  const local = `v${field.number}`;
  const statements = `const ${local} = ${list};
  n += ${scope.local('boundList')}(${local}, ${element(field)}, ${name});
  if (${local} !== undefined) for (let i = 0; i < ${local}.length; i++) n += ${valueBound(field, scope.sure(`${local}[i]`), scope)};`;
  return { statements };
}

function map(field: Field, scope: Scope): Part {
  const name = quote(field.fullName);
  const hasText = scalarForm(field.mapKey ?? 'string').size === 0;
  if (fixed(field) > 0)
    return {
      sum: `${scope.local(hasText ? 'boundKeys' : 'boundMap')}(m.${field.key}, ${element(field)}, ${name})`,
    };
  const local = `v${field.number}`;
  const key = hasText ? ` + ${scope.local('boundString')}(key, ${name})` : '';
  const value = valueBound(field, scope.sure(`${local}[key]`), scope);
  const statements = `const ${local} = m.${field.key};
  if (${local} !== undefined) for (const key of $.mapKeys(${local}, ${name})) n += ${element(field)}${key} + ${value};`;
  return { statements };
}

/** The fields of a oneof that are neighbours. */
function chosen(oneof: Oneof, fields: readonly Field[], scope: Scope): Part {
  const value = `m.${oneof.key}`;
  const bound = (field: Field) => valueBound(field, `${value}.value`, scope);
  const [first, second] = fields;
  if (first !== undefined && second === undefined)
    return { sum: `${value}?.case === ${quote(first.key)} ? ${bound(first)} : 0`, isChoice: true };
  const cases = fields.map((field) => `case ${quote(field.key)}: n += ${bound(field)}; break;`);
  return { statements: `switch (${value}?.case) {\n    ${cases.join('\n    ')}\n  }` };
}

/** One sum where that will do, which most messages are: a compiler reads it faster than a statement for each field. */
function add(room: number, parts: readonly Part[]): string {
  const sums = parts.map((part) =>
    'sum' in part ? (part.isChoice ? `(${part.sum})` : part.sum) : undefined,
  );
  if (!sums.includes(undefined)) return `return ${[room, ...sums].join(' +\n    ')};`;
  const lines = parts.map((part) => ('sum' in part ? `n += ${part.sum};` : part.statements));
  return [`let n = ${room};`, ...lines, 'return n;'].join('\n  ');
}

export function emitBound(message: Message, scope: Scope): string {
  const runs = fieldRuns(message);
  const parts: Part[] = [];
  for (const { oneof, fields } of runs) {
    if (oneof === undefined) {
      for (const field of fields) {
        if (field.presence === 'map') parts.push(map(field, scope));
        else if (field.presence === 'repeated') parts.push(repeated(field, scope));
        else if (fixed(field) === 0) parts.push(singular(field, scope));
      }
      continue;
    }
    const measured = fields.filter((field) => fixed(field) === 0);
    if (measured.length > 0) parts.push(chosen(oneof, measured, scope));
  }
  if (message.keepsUnknown) parts.push({ sum: '$.boundUnknown(m)' });
  const body = add(roomOf(runs), parts);
  const sink = /, sink[,)]/.test(body) ? 'sink' : '_sink';
  const parameters: Parameter[] = [
    ['m', message.init],
    [sink, scope.alias('Sink')],
    ['depth', 'number', '0'],
    ['field', 'string', quote(message.fullName)],
  ];
  return `${scope.head(message, 'bound', parameters, 'number')}
  ${scope.local('checkMessage')}(m, depth, field);
  ${body}
}`;
}
