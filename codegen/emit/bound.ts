/** The generated `bound` function: upper bound of the encoding, and the checks of kind. Visits values in the order in which encode writes them. */
import type { Field, Message } from '../model/model.ts';
import { fieldRuns } from './runs.ts';
import { formOf, quote, scalarForm, tagBytes, wireTypeOf } from './scalar.ts';
import type { Parameter, Scope } from './scope.ts';

/** Bytes of a length prefix at most. */
const lengthBytes = 5;

function tagSize(field: Field): number {
  return tagBytes(field.number, wireTypeOf(field.type)).length;
}

/** In the message itself, at most once. */
function isSingular({ presence }: Field): boolean {
  return presence === 'implicit' || presence === 'optional' || presence === 'required';
}

/** Expression for one value without its tag; a number literal when the type alone decides. */
function valueBound(field: Field, value: string, scope: Scope): string {
  const { type } = field;
  if (type.kind === 'message')
    return `${field.delimited ? tagSize(field) : lengthBytes} + ${scope.call(type, 'bound')}(${value}, sink, depth + 1, ${quote(field.fullName)})`;
  const form = formOf(type);
  if (form?.type === 'string') return `$.boundString(${value}, ${quote(field.fullName)})`;
  if (form?.type === 'Uint8Array' && field.bulkThreshold !== undefined)
    return `$.boundBulk(${value}, sink, ${quote(field.fullName)}, ${field.bulkThreshold})`;
  if (form?.type === 'Uint8Array') return `$.boundBytes(${value}, sink, ${quote(field.fullName)})`;
  return String(form?.size);
}

function fixed(field: Field): number {
  return formOf(field.type)?.size ?? 0;
}

function singular(field: Field, value: string, scope: Scope): string {
  return `n += ${tagSize(field)} + ${valueBound(field, value, scope)};`;
}

function repeated(field: Field, value: string, scope: Scope): string {
  const name = quote(field.fullName);
  const size = fixed(field);
  // A packed run has one tag more than its elements need.
  if (size > 0)
    return `n += ${tagSize(field)} + $.boundList(${value}, ${field.packed ? size : size + tagSize(field)}, ${name});`;
  return `n += $.boundList(${value}, ${tagSize(field)}, ${name});
    for (let i = 0; i < ${value}.length; i++) n += ${valueBound(field, scope.sure(`${value}[i]`), scope)};`;
}

function map(field: Field, value: string, scope: Scope): string {
  const key = scalarForm(field.mapKey ?? 'string');
  const keyBound = key.size > 0 ? String(key.size) : `$.boundString(key, ${quote(field.fullName)})`;
  const keys = `const keys = $.planKeys(sink, ${value}, ${quote(field.fullName)});`;
  const least = tagSize(field) + lengthBytes + 2;
  const size = fixed(field);
  // Where every entry takes the same, counting them is enough.
  if (key.size > 0 && size > 0) return `${keys}\n    n += keys.length * ${least + key.size + size};`;
  return `${keys}
    for (let i = 0; i < keys.length; i++) {
      const key = ${scope.sure('keys[i]')};
      n += ${least} + ${keyBound} + ${valueBound(field, scope.sure(`${value}[key]`), scope)};
    }`;
}

export function emitBound(message: Message, scope: Scope): string {
  // Singular numbers are counted whether they are there or not: an addition at generation time instead of a test for each call.
  const constant = message.fields
    .filter(isSingular)
    .reduce((sum, field) => sum + (fixed(field) > 0 ? tagSize(field) + fixed(field) : 0), 0);
  const lines: string[] = [];
  const checked = new Set<string>();
  for (const run of fieldRuns(message)) {
    const { oneof } = run;
    if (oneof !== undefined) {
      const local = `o${message.oneofs.indexOf(oneof)}`;
      if (!checked.has(local)) {
        checked.add(local);
        lines.push(`const ${local} = m.${oneof.key};`);
        lines.push(`if (${local} !== undefined) $.boundOneof(${local}, ${quote(oneof.fullName)});`);
        const cases = oneof.fields.map((field) => `case ${quote(field.key)}:`).join(' ');
        lines.push(
          `switch (${local}?.case) { case undefined: ${cases} break; default: $.unknownCase(${quote(oneof.fullName)}, ${local}); }`,
        );
      }
      const cases = run.fields.map(
        (field) => `case ${quote(field.key)}: ${singular(field, `${local}.value`, scope)} break;`,
      );
      lines.push(`switch (${local}?.case) {\n    ${cases.join('\n    ')}\n  }`);
      continue;
    }
    for (const field of run.fields) {
      const local = `v${field.number}`;
      if (isSingular(field) && fixed(field) > 0) continue;
      const emit = field.presence === 'map' ? map : field.presence === 'repeated' ? repeated : singular;
      lines.push(`const ${local} = m.${field.key};`);
      lines.push(`if (${local} !== undefined) {\n    ${emit(field, local, scope)}\n  }`);
    }
  }
  if (message.keepsUnknown) lines.push('n += $.boundUnknown(m);');
  const body = lines.join('\n  ');
  const sink = /\bsink\b/.test(body) ? 'sink' : '_sink';
  const parameters: Parameter[] = [
    ['m', message.init],
    [sink, '$.Sink'],
    ['depth', 'number', '0'],
    ['field', 'string', quote(message.fullName)],
  ];
  return `${scope.head(message, 'bound', parameters, 'number')}
  $.boundMessage(m, depth, field);
  let n = ${constant};
  ${body}
  return n;
}`;
}
