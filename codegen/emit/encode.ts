/**
 * The generated `encodeTo` function: straight-line code with literal tags, fields by number. Room for what no value changes is looked for once; each value of
 * a length of its own looks whether it fits in front of what must come behind it (room.ts).
 */
import type { Field, Message, Oneof } from '../model/model.ts';
import { encodeMap } from './map.ts';
import { fieldRoom, lengthBytes, listed, roomOf, runRoom, tagSize, widening } from './room.ts';
import { fieldRuns } from './runs.ts';
import { formOf, packedPrimitive, quote, tagBytes, tagOf, wireTypeOf } from './scalar.ts';
import type { Parameter, Scope } from './scope.ts';
import { limitOf, nested, withLocals, writeValue } from './value.ts';

/** Statements that put the tag at `at`; `at` itself is advanced by what follows. */
function tag(number: number, wireType: number): { readonly write: string; readonly size: number } {
  const bytes = tagBytes(number, wireType);
  const write = bytes.map((byte, i) => `bytes[${i === 0 ? 'at' : `at + ${i}`}] = ${byte};`).join(' ');
  return { write, size: bytes.length };
}

/** A message between two tags instead of behind a length. */
function group(field: Field, value: string, free: number, scope: Scope): string {
  const start = tag(field.number, 3);
  const end = tag(field.number, 4);
  return `${start.write} at = ${nested(field, value, `at + ${start.size}`, limitOf(free + end.size), scope)}; ${end.write} at += ${end.size};`;
}

function tagged(field: Field, value: string, free: number, scope: Scope): string {
  if (field.delimited) return group(field, value, free, scope);
  const { write, size } = tag(field.number, wireTypeOf(field.type));
  return `${write} at = ${writeValue(field, value, size, free, scope)};`;
}

/** When a field without presence is worth sending. */
function isSet(field: Field, value: string): string {
  const present = `${value} !== undefined`;
  if (field.presence !== 'implicit' || field.type.kind === 'message') return present;
  if (field.type.kind === 'enum') return `${present} && ${value} !== 0`;
  const { scalar, jstype } = field.type;
  const form = formOf(field.type);
  switch (form?.type) {
    case 'string':
      return `${present} && ${value} !== ''`;
    case 'Uint8Array':
      return `${present} && $.hasBytes(${value}, ${quote(field.fullName)})`;
    case 'boolean':
      return `${present} && ${value} !== false`;
    case 'bigint':
      return `${present} && ${value} !== ${jstype === 'bigint' ? '0n' : jstype === 'string' ? "'0'" : '0'}`;
    default:
      // -0 is not the default: its bits differ.
      if (scalar === 'float' || scalar === 'double')
        return `${present} && (${value} !== 0 || 1 / ${value} < 0)`;
      return `${present} && ${value} !== 0`;
  }
}

/** Where each element looks for its own room, one that has found none ends the list: room for the next one's tag is what the one before leaves free. */
function loop(field: Field, length: string): string {
  return `for (let i = 0; i < ${length}${listed(field) > 0 ? '' : ' && !sink.full'}; i++)`;
}

/** Elements of a list tend to be of one size: each is written as far from its length as the length of the one before was long, one byte or two. */
function messages(field: Field, value: string, free: number, scope: Scope): string {
  const { write, size } = tag(field.number, 2);
  const limit = `${limitOf(free + fieldRoom(field) + widening)} + wide`;
  const content = nested(field, scope.sure(`${value}[i]`), 'start + 1 + wide', limit, scope);
  const holes = field.type.kind === 'message' && scope.mayHaveHoles(field.type);
  const close = holes ? '$.closeLength(sink, start, sink.held' : '$.closeSolid(bytes, start';
  return `for (let i = 0, wide = 0; i < ${value}.length && !sink.full; i++) {
      ${write} const start = at + ${size};
      at = ${close}, ${content}, wide);
      wide = ${scope.sure('bytes[start]')} >> 7;
    }`;
}

function repeated(field: Field, value: string, free: number, scope: Scope): string {
  const behind = limitOf(free + fieldRoom(field));
  if (formOf(field.type)?.primitive === 'String' && tagSize(field) === 1)
    return `at = $.writeStrings(sink, at, ${tagOf(field, 2)}, ${value}, ${behind}, ${quote(field.fullName)});`;
  const check = `$.checkList(${value}, ${quote(field.fullName)});`;
  const each = loop(field, `${value}.length`);
  const fits = `if (at + ${value}.length * ${listed(field)} > ${limitOf(free)}) $.noRoom(sink, at);`;
  const item = scope.sure(`${value}[i]`);
  if (!field.packed) {
    if (field.type.kind === 'message' && !field.delimited)
      return `${check}\n    ${messages(field, value, free, scope)}`;
    const all = `${each} { ${tagged(field, item, free + (listed(field) > 0 ? 0 : fieldRoom(field)), scope)} }`;
    return listed(field) > 0 ? `${check}\n    ${fits}\n    else ${all}` : `${check}\n    ${all}`;
  }
  const { write, size } = tag(field.number, 2);
  const run = packedPrimitive(field);
  if (run !== undefined) {
    const call = `$.writePacked${run}(sink, at + ${size}, ${value}, ${limitOf(free)}, ${quote(field.fullName)})`;
    return `${check}\n    if (${value}.length !== 0) {\n      ${write} at = ${call};\n    }`;
  }
  return `${check}
    if (at + ${size + lengthBytes} + ${value}.length * ${listed(field)} > ${limitOf(free)}) $.noRoom(sink, at);
    else if (${value}.length !== 0) {
      ${write} const start = at + ${size};
      at = start + 1;
      ${each} at = ${writeValue(field, item, 0, 0, scope)};
      at = $.closeSolid(bytes, start, at);
    }`;
}

/** A oneof whose fields are neighbours, as they nearly always are. */
function wholeOneof({ key, fullName }: Oneof, local: string, cases: readonly string[]): string[] {
  const name = quote(fullName);
  return [
    `const ${local} = m.${key};`,
    `if (${local} !== undefined) {
    $.checkOneof(${local}, ${name});
    switch (${local}.case) {
      case undefined: break;
      ${cases.join('\n      ')}
      default: $.unknownCase(${name}, ${local});
    }
  }`,
  ];
}

/** The value of any other one, checked where the first of its fields comes. */
function checkOneof({ key, fullName, fields }: Oneof, local: string): string[] {
  const cases = fields.map((field) => `case ${quote(field.key)}:`).join(' ');
  return [
    `const ${local} = m.${key};`,
    `if (${local} !== undefined) $.checkOneof(${local}, ${quote(fullName)});`,
    `switch (${local}?.case) { case undefined: ${cases} break; default: $.unknownCase(${quote(fullName)}, ${local}); }`,
  ];
}

export function emitEncode(message: Message, scope: Scope): string {
  const runs = fieldRuns(message);
  const room = roomOf(runs);
  const lines: string[] = [];
  const declared = new Set<string>();
  let free = room;
  for (const run of runs) {
    const { oneof } = run;
    if (oneof !== undefined) {
      free -= runRoom(run);
      const local = `o${message.oneofs.indexOf(oneof)}`;
      const cases = run.fields.map(
        (field) => `case ${quote(field.key)}: ${tagged(field, `${local}.value`, free, scope)} break;`,
      );
      if (run.fields.length === oneof.fields.length) {
        lines.push(...wholeOneof(oneof, local, cases));
        continue;
      }
      if (!declared.has(local)) lines.push(...checkOneof(oneof, local));
      declared.add(local);
      lines.push(`switch (${local}?.case) {\n    ${cases.join('\n    ')}\n  }`);
      continue;
    }
    for (const field of run.fields) {
      free -= fieldRoom(field);
      const local = `v${field.number}`;
      const emit = field.presence === 'map' ? encodeMap : field.presence === 'repeated' ? repeated : tagged;
      lines.push(`const ${local} = m.${field.key};`);
      if (field.presence === 'required')
        lines.push(`if (${local} === undefined) $.missing(${quote(field.fullName)});`);
      lines.push(`if (${isSet(field, local)}) {\n    ${emit(field, local, free, scope)}\n  }`);
    }
  }
  if (message.keepsUnknown) lines.push('at = $.writeUnknown(sink, at, m, limit);');
  const body = withLocals(lines.join('\n  '), scope);
  const bytes = /(?<!\.)\bbytes(\[|,)/.test(body) ? '  const bytes = sink.bytes;\n' : '';
  const parameters: Parameter[] = [
    ['m', message.init],
    ['sink', '$.Sink'],
    ['at', 'number'],
    ['limit', 'number', 'sink.bytes.length'],
    ['depth', 'number', '0'],
    ['field', 'string', quote(message.fullName)],
  ];
  return `${scope.head(message, 'encodeTo', parameters, 'number')}
  ${scope.local('checkMessage')}(m, depth, field);
  if (at${room === 0 ? '' : ` + ${room}`} > limit) return ${scope.local('noRoom')}(sink, at);
${bytes}  ${body}
  return at;
}`;
}
