/** The generated `bound` function: upper bound of the encoding, and the checks of kind. Visits values in the order in which encode writes them. */
import type { Field, Message } from '../model/model.ts';
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
    return absent === '' ? bulk : `${value} === undefined ? 0 : ${bulk}`;
  }
  return `${scope.local(`boundBytes${absent}`)}(${value}, sink, ${name})`;
}

function singular(field: Field, scope: Scope): string {
  const value = `m.${field.key}`;
  const add = `n += ${valueBound(field, value, scope, field.type.kind === 'message' ? '' : 'Field')};`;
  return field.type.kind === 'message' ? `if (${value} !== undefined) ${add}` : add;
}

function repeated(field: Field, scope: Scope): string {
  const name = quote(field.fullName);
  const list = `m.${field.key}`;
  const isString = field.type.kind !== 'message' && formOf(field.type)?.type === 'string';
  if (isString) return `n += ${scope.local('boundStrings')}(${list}, ${element(field)}, ${name});`;
  if (listed(field) > 0) return `n += ${scope.local('boundList')}(${list}, ${listed(field)}, ${name});`;
  const local = `v${field.number}`;
  return `const ${local} = ${list};
  n += ${scope.local('boundList')}(${local}, ${element(field)}, ${name});
  if (${local} !== undefined) for (let i = 0; i < ${local}.length; i++) n += ${valueBound(field, scope.sure(`${local}[i]`), scope)};`;
}

function map(field: Field, scope: Scope): string {
  const name = quote(field.fullName);
  const hasText = scalarForm(field.mapKey ?? 'string').size === 0;
  if (fixed(field) > 0)
    return `n += ${scope.local(hasText ? 'boundKeys' : 'boundMap')}(m.${field.key}, ${element(field)}, ${name});`;
  const local = `v${field.number}`;
  const key = hasText ? ` + ${scope.local('boundString')}(key, ${name})` : '';
  const value = valueBound(field, scope.sure(`${local}[key]`), scope);
  return `const ${local} = m.${field.key};
  if (${local} !== undefined) for (const key of $.mapKeys(${local}, ${name})) n += ${element(field)}${key} + ${value};`;
}

/** The fields of a oneof that are neighbours; `local` holds its value. */
function chosen(fields: readonly Field[], local: string, scope: Scope): string {
  const add = (field: Field) => `n += ${valueBound(field, `${local}.value`, scope)};`;
  const [first, second] = fields;
  if (first !== undefined && second === undefined)
    return `if (${local}?.case === ${quote(first.key)}) ${add(first)}`;
  const cases = fields.map((field) => `case ${quote(field.key)}: ${add(field)} break;`);
  return `switch (${local}?.case) {\n    ${cases.join('\n    ')}\n  }`;
}

export function emitBound(message: Message, scope: Scope): string {
  const runs = fieldRuns(message);
  const lines: string[] = [];
  const declared = new Set<string>();
  for (const { oneof, fields } of runs) {
    if (oneof === undefined) {
      for (const field of fields) {
        if (field.presence === 'map') lines.push(map(field, scope));
        else if (field.presence === 'repeated') lines.push(repeated(field, scope));
        else if (fixed(field) === 0) lines.push(singular(field, scope));
      }
      continue;
    }
    const measured = fields.filter((field) => fixed(field) === 0);
    if (measured.length === 0) continue;
    const local = `o${message.oneofs.indexOf(oneof)}`;
    if (!declared.has(local)) lines.push(`const ${local} = m.${oneof.key};`);
    declared.add(local);
    lines.push(chosen(measured, local, scope));
  }
  if (message.keepsUnknown) lines.push('n += $.boundUnknown(m);');
  const body = lines.join('\n  ');
  const sink = /, sink[,)]/.test(body) ? 'sink' : '_sink';
  const parameters: Parameter[] = [
    ['m', message.init],
    [sink, '$.Sink'],
    ['depth', 'number', '0'],
    ['field', 'string', quote(message.fullName)],
  ];
  return `${scope.head(message, 'bound', parameters, 'number')}
  ${scope.local('checkMessage')}(m, depth, field);
  let n = ${roomOf(runs)};
  ${body}
  return n;
}`;
}
