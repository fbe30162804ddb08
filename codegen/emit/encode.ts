/** The generated `encodeTo` function: straight-line code with literal tags, fields by number. */
import type { Field, Message } from '../model/model.ts';
import { fieldRuns } from './runs.ts';
import { formOf, isPlainNumber, packedPrimitive, quote, scalarForm, tagBytes, wireTypeOf } from './scalar.ts';
import type { Parameter, Scope } from './scope.ts';

/** Statements that put the tag at `at`; `at` itself is advanced by what follows. */
function tag(number: number, wireType: number): { readonly write: string; readonly size: number } {
  const bytes = tagBytes(number, wireType);
  const write = bytes.map((byte, i) => `bytes[${i === 0 ? 'at' : `at + ${i}`}] = ${byte};`).join(' ');
  return { write, size: bytes.length };
}

/** Expression that writes a value at `at + skip` and is the new end. */
function writeValue(field: Field, value: string, skip: number, scope: Scope): string {
  const { type } = field;
  const place = skip === 0 ? 'at' : `at + ${skip}`;
  const name = quote(field.fullName);
  if (type.kind === 'message') {
    // Arguments are evaluated from left to right: `sink.held` is read before the message is written.
    return `$.closeLength(sink, ${place}, sink.held, ${scope.call(type, 'encodeTo')}(${value}, sink, at + ${skip + 1}))`;
  }
  const form = formOf(type);
  switch (form?.primitive) {
    case 'String':
      return `$.writeString(bytes, ${place}, ${value})`;
    case 'Bytes':
      if (field.bulkThreshold !== undefined)
        return `$.writeBulk(sink, ${place}, ${value}, ${field.bulkThreshold})`;
      return `$.writeBytes(sink, ${place}, ${value})`;
    case 'Float':
    case 'Double':
      return `$.write${form.primitive}(sink, ${place}, ${value}, ${name})`;
    default:
      if (form !== undefined && isPlainNumber(type, form)) {
        return `$.write${form.primitive}Number(bytes, ${place}, ${value}, ${name})`;
      }
      return `$.write${form?.primitive}(bytes, ${place}, ${asBigint(field, value)}, ${name})`;
  }
}

function asBigint(field: Field, value: string): string {
  if (field.type.kind !== 'scalar' || formOf(field.type)?.type !== 'bigint') return value;
  const name = quote(field.fullName);
  if (field.type.jstype === 'string') return `$.bigintOfString(${value}, ${name})`;
  return field.type.jstype === 'number' ? `$.bigintOfNumber(${value}, ${name})` : value;
}

/** A message between two tags instead of behind a length. */
function group(field: Field, value: string, scope: Scope): string {
  if (field.type.kind !== 'message') return '';
  const start = tag(field.number, 3);
  const end = tag(field.number, 4);
  return `${start.write} at = ${scope.call(field.type, 'encodeTo')}(${value}, sink, at + ${start.size}); ${end.write} at += ${end.size};`;
}

function tagged(field: Field, value: string, scope: Scope): string {
  if (field.delimited) return group(field, value, scope);
  const { write, size } = tag(field.number, wireTypeOf(field.type));
  return `${write} at = ${writeValue(field, value, size, scope)};`;
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
      return `${present} && ${value}.length !== 0`;
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

function repeated(field: Field, value: string, scope: Scope): string {
  if (!field.packed)
    return `for (let i = 0; i < ${value}.length; i++) { ${tagged(field, scope.sure(`${value}[i]`), scope)} }`;
  const { write, size } = tag(field.number, 2);
  const run = packedPrimitive(field);
  if (run !== undefined) {
    const call = `$.writePacked${run}(sink, at + ${size}, ${value}, ${quote(field.fullName)})`;
    return `if (${value}.length !== 0) {\n      ${write} at = ${call};\n    }`;
  }
  const element = writeValue(field, scope.sure(`${value}[i]`), 0, scope);
  return `if (${value}.length !== 0) {
      ${write} const start = at + ${size};
      at = start + 1;
      for (let i = 0; i < ${value}.length; i++) at = ${element};
      at = $.closeLength(sink, start, sink.held, at);
    }`;
}

/** The key of an entry as what its type needs; in JavaScript it is a string. */
function mapKey(field: Field): string {
  const form = scalarForm(field.mapKey ?? 'string');
  const name = quote(field.fullName);
  const write = `bytes, at + 1`;
  switch (form.type) {
    case 'string':
      return `$.writeString(${write}, key)`;
    case 'boolean':
      return `$.writeBool(${write}, $.boolKey(key, ${name}), ${name})`;
    case 'bigint':
      return `$.write${form.primitive}(${write}, $.bigintOfString(key, ${name}), ${name})`;
    default:
      return `$.write${form.primitive}(${write}, $.numberKey(key, ${name}), ${name})`;
  }
}

function map(field: Field, value: string, scope: Scope): string {
  const entry = tag(field.number, 2);
  const keyTag = tagBytes(1, scalarForm(field.mapKey ?? 'string').wireType)[0];
  const valueTag = tagBytes(2, wireTypeOf(field.type))[0];
  return `const keys = $.plannedKeys(sink, ${value});
    for (let i = 0; i < keys.length; i++) {
      const key = ${scope.sure('keys[i]')};
      ${entry.write} const start = at + ${entry.size};
      const held = sink.held;
      at = start + 1;
      bytes[at] = ${keyTag}; at = ${mapKey(field)};
      bytes[at] = ${valueTag}; at = ${writeValue(field, scope.sure(`${value}[key]`), 1, scope)};
      at = $.closeLength(sink, start, held, at);
    }`;
}

export function emitEncode(message: Message, scope: Scope): string {
  const lines: string[] = [];
  const declared = new Set<string>();
  for (const run of fieldRuns(message)) {
    const { oneof } = run;
    if (oneof !== undefined) {
      const local = `o${message.oneofs.indexOf(oneof)}`;
      if (!declared.has(local)) lines.push(`const ${local} = m.${oneof.key};`);
      declared.add(local);
      const cases = run.fields.map(
        (field) => `case ${quote(field.key)}: ${tagged(field, `${local}.value`, scope)} break;`,
      );
      lines.push(`switch (${local}?.case) {\n    ${cases.join('\n    ')}\n  }`);
      continue;
    }
    for (const field of run.fields) {
      const local = `v${field.number}`;
      const emit = field.presence === 'map' ? map : field.presence === 'repeated' ? repeated : tagged;
      lines.push(`const ${local} = m.${field.key};`);
      if (field.presence === 'required')
        lines.push(`if (${local} === undefined) $.missing(${quote(field.fullName)});`);
      lines.push(`if (${isSet(field, local)}) {\n    ${emit(field, local, scope)}\n  }`);
    }
  }
  if (message.keepsUnknown) lines.push('at = $.writeUnknown(bytes, at, m);');
  const body = lines.length === 0 ? '' : `  const bytes = sink.bytes;\n  ${lines.join('\n  ')}\n`;
  const [m, sink] = lines.length === 0 ? ['_m', '_sink'] : ['m', 'sink'];
  const parameters: Parameter[] = [
    [m, message.init],
    [sink, '$.Sink'],
    ['at', 'number'],
  ];
  return `${scope.head(message, 'encodeTo', parameters, 'number')}
${body}  return at;
}`;
}
