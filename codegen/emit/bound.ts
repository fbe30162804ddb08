/** The generated `bound` function: upper bound of the encoding, and the checks of kind. Visits values in the order in which encode writes them. */
import type { Field, Message } from '../model/model.ts';
import { element, fixed, listed, roomOf } from './room.ts';
import { fieldRuns } from './runs.ts';
import { formOf, quote, scalarForm } from './scalar.ts';
import type { Parameter, Scope } from './scope.ts';

/** Expression for what one value takes besides the room that its field has in any case. */
function valueBound(field: Field, value: string, scope: Scope): string {
  const { type } = field;
  const name = quote(field.fullName);
  if (type.kind === 'message') return `${scope.call(type, 'bound')}(${value}, sink, depth + 1, ${name})`;
  if (formOf(type)?.type === 'string') return `$.boundString(${value}, ${name})`;
  if (field.bulkThreshold !== undefined)
    return `$.boundBulk(${value}, sink, ${name}, ${field.bulkThreshold})`;
  return `$.boundBytes(${value}, sink, ${name})`;
}

function repeated(field: Field, value: string, scope: Scope): string {
  const list = (size: number) => `n += $.boundList(${value}, ${size}, ${quote(field.fullName)});`;
  if (listed(field) > 0) return list(listed(field));
  return `${list(element(field))}
    for (let i = 0; i < ${value}.length; i++) n += ${valueBound(field, scope.sure(`${value}[i]`), scope)};`;
}

function map(field: Field, value: string, scope: Scope): string {
  const name = quote(field.fullName);
  const keys = `const keys = $.mapKeys(${value}, ${name});
    n += keys.length * ${element(field)};`;
  const parts: string[] = [];
  if (scalarForm(field.mapKey ?? 'string').size === 0) parts.push(`$.boundString(key, ${name})`);
  if (fixed(field) === 0) parts.push(valueBound(field, scope.sure(`${value}[key]`), scope));
  if (parts.length === 0) return keys;
  return `${keys}
    for (let i = 0; i < keys.length; i++) {
      const key = ${scope.sure('keys[i]')};
      n += ${parts.join(' + ')};
    }`;
}

export function emitBound(message: Message, scope: Scope): string {
  const runs = fieldRuns(message);
  const lines: string[] = [];
  const declared = new Set<string>();
  for (const run of runs) {
    const { oneof } = run;
    if (oneof !== undefined) {
      const local = `o${message.oneofs.indexOf(oneof)}`;
      const cases = run.fields
        .filter((field) => fixed(field) === 0)
        .map(
          (field) => `case ${quote(field.key)}: n += ${valueBound(field, `${local}.value`, scope)}; break;`,
        );
      if (cases.length === 0) continue;
      if (!declared.has(local)) lines.push(`const ${local} = m.${oneof.key};`);
      declared.add(local);
      lines.push(`switch (${local}?.case) {\n    ${cases.join('\n    ')}\n  }`);
      continue;
    }
    for (const field of run.fields) {
      const local = `v${field.number}`;
      const list = field.presence === 'map' || field.presence === 'repeated';
      if (!list && fixed(field) > 0) continue;
      const emit = field.presence === 'map' ? map : repeated;
      const statement = list ? emit(field, local, scope) : `n += ${valueBound(field, local, scope)};`;
      lines.push(`const ${local} = m.${field.key};`);
      lines.push(`if (${local} !== undefined) {\n    ${statement}\n  }`);
    }
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
  $.checkMessage(m, depth, field);
  let n = ${roomOf(runs)};
  ${body}
  return n;
}`;
}
