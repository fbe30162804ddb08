/**
 * Emits the `encodeTo` function, which is straight-line code with literal tags. The code checks once whether
 * it has room for the part that does not depend on values. Each value of varying length then checks whether
 * it fits in front of the values that must follow it (room.ts).
 */
import type { Field, Message, Oneof } from '../../model/model.ts';
import { formOf, packedPrimitive, quote, tagBytes, tagOf, wireTypeOf } from '../scalar.ts';
import type { FileScope, Parameter } from '../scope.ts';
import { binding, braced, variableOf } from './binding.ts';
import { encodeMap } from './map.ts';
import { fieldRoom, lengthBytes, listed, roomOf, runRoom, tagSize, widening } from './room.ts';
import { fieldRuns, type Run } from './runs.ts';
import { limitOf, nested, writeValue } from './value.ts';

/** Returns statements that write the tag at `at`; the statements behind them advance `at`. */
function tag(
  number: number,
  wireType: number,
  scope: FileScope,
): { readonly write: string; readonly size: number } {
  const bytes = tagBytes(number, wireType);
  return { write: putBytes(bytes, scope), size: bytes.length };
}

const putBytes = (bytes: readonly number[], scope: FileScope): string =>
  bytes.map((byte, i) => `${scope.bytes()}[${i === 0 ? 'at' : `at + ${i}`}] = ${byte};`).join(' ');

/** Writes a message between two tags instead of behind a length. */
function group(field: Field, value: string, free: number, scope: FileScope): string[] {
  const start = tag(field.number, 3, scope);
  const end = tag(field.number, 4, scope);
  const content = nested(field, value, `at + ${start.size}`, limitOf(free + end.size), scope);
  return [start.write, `at = ${content};`, `${end.write} at += ${end.size};`];
}

/** Uses a primitive that writes the last byte of the tag, which is nearly always the tag's only byte. */
function tagged(field: Field, value: string, free: number, scope: FileScope): string[] {
  if (field.delimited) return group(field, value, free, scope);
  const bytes = tagBytes(field.number, wireTypeOf(field.type));
  const last = bytes.pop();
  const name = quote(field.fullName);
  const write = `at = ${writeValue(field, value, bytes.length, free, scope, name, last)};`;
  return bytes.length === 0 ? [write] : [putBytes(bytes, scope), write];
}

/**
 * Returns the default of an omitted value, for fields that are not sent when they have their default. A
 * single comparison then decides whether the field is sent.
 */
function unsent(field: Field): string | undefined {
  const form = formOf(field.type);
  if (field.presence !== 'implicit' || form === undefined || form.type === 'Uint8Array') return undefined;
  // -0 is not the default, because its bits differ. For a bigint field the comparison is left out, because
  // comparing bigints is a call.
  if (form.primitive === 'Float' || form.primitive === 'Double') return undefined;
  if (form.type !== 'bigint' || field.type.kind !== 'scalar') return form.zero;
  return field.type.jstype === 'bigint' ? undefined : field.type.jstype === 'string' ? "'0'" : '0';
}

/** Returns the condition under which a field is sent. */
function isSet(field: Field, value: string, scope: FileScope): string {
  const zero = unsent(field);
  if (zero !== undefined) return `${value} !== ${zero}`;
  const present = `${value} !== undefined`;
  if (field.presence !== 'implicit' || field.type.kind === 'message') return present;
  switch (formOf(field.type)?.type) {
    case 'Uint8Array':
      if (field.array !== undefined)
        return `${present} && $.hasArray(${value}, $.arrays.${field.array}, ${quote(field.fullName)})`;
      return `${present} && ${scope.local('hasBytes')}(${value}, ${quote(field.fullName)})`;
    case 'bigint':
      return `${present} && ${value} !== 0n`;
    default:
      return `${present} && (${value} !== 0 || 1 / ${value} < 0)`;
  }
}

/**
 * Returns a loop for elements that check their room themselves. An element without room ends the list,
 * because the element before it has left room for its tag.
 */
function loop(field: Field, length: string): string {
  return `for (let i = 0; i < ${length}${listed(field) > 0 ? '' : ' && !writer.full'}; i++)`;
}

/**
 * Returns the code for the length of a list whose room is checked as a whole. The length is read once,
 * because a getter or a Proxy of the application may change the length during encoding.
 */
const count = (value: string): string => `const count = ${value}.length;`;

/**
 * Elements of a list tend to have the same size. Therefore the code reserves one or two bytes for the length
 * of each element: the number of bytes that the previous length needed.
 */
function messages(field: Field, value: string, free: number, scope: FileScope): string {
  const { write, size } = tag(field.number, 2, scope);
  const limit = `${limitOf(free + fieldRoom(field) + widening)} + wide`;
  const content = nested(field, scope.sure(`${value}[i]`), 'start + 1 + wide', limit, scope);
  const outOfLine = field.type.kind === 'message' && scope.mayBeOutOfLine(field.type);
  const close = outOfLine
    ? `${scope.local('closeLength')}(writer, start, writer.held`
    : `${scope.local('closeSolid')}(${scope.bytes()}, start`;
  return `for (let i = 0, wide = 0; i < ${value}.length && !writer.full; i++) {
      ${write} const start = at + ${size};
      at = ${close}, ${content}, wide);
      wide = ${scope.sure(`${scope.bytes()}[start]`)} >> 7;
    }`;
}

/** Returns whether one primitive writes the whole list. */
function hasShortStrings(field: Field): boolean {
  return formOf(field.type)?.primitive === 'String' && tagSize(field) === 1;
}

function repeated(field: Field, value: string, free: number, scope: FileScope): string[] {
  const behind = limitOf(free + fieldRoom(field));
  if (hasShortStrings(field))
    return [
      `at = ${scope.local('writeStringsField')}(writer, at, ${tagOf(field, 2)}, ${value}, ${behind}, ${quote(field.fullName)});`,
    ];
  const check = `${scope.local('checkList')}(${value}, ${quote(field.fullName)});`;
  const each = loop(field, listed(field) > 0 ? 'count' : `${value}.length`);
  const item = scope.sure(`${value}[i]`);
  if (!field.packed) {
    if (field.type.kind === 'message' && !field.delimited)
      return [check, messages(field, value, free, scope)];
    const write = tagged(field, item, free + (listed(field) > 0 ? 0 : fieldRoom(field)), scope);
    const all = `${each} { ${write.join(' ')} }`;
    if (listed(field) === 0) return [check, all];
    const fits = `if (at + count * ${listed(field)} > ${limitOf(free)}) ${scope.local('noRoom')}(writer, at);`;
    return [check, count(value), fits, `else ${all}`];
  }
  const { write, size } = tag(field.number, 2, scope);
  const run = packedPrimitive(field);
  if (run !== undefined) {
    const call = `${scope.local(`writePacked${run}`)}(writer, at + ${size}, ${value}, ${limitOf(free)}, ${quote(field.fullName)})`;
    return [check, `if (${value}.length !== 0) {\n      ${write} at = ${call};\n    }`];
  }
  return [
    check,
    count(value),
    `if (at + ${size + lengthBytes} + count * ${listed(field)} > ${limitOf(free)}) ${scope.local('noRoom')}(writer, at);
    else if (count !== 0) {
      ${write} const start = at + ${size};
      at = start + 1;
      ${each} at = ${writeValue(field, item, 0, 0, scope)};
      at = ${scope.local('closeSolid')}(${scope.bytes()}, start, at);
    }`,
  ];
}

/**
 * Handles a oneof whose fields are adjacent, as they nearly always are. `undefined` is the first case,
 * because V8 then compares names only with names.
 */
function wholeOneof({ fullName }: Oneof, local: string, cases: readonly string[], scope: FileScope): string {
  return `switch (${local}?.case) {
    case undefined: default: ${scope.local('noCase')}(${local}, ${quote(fullName)}); break;
    ${cases.join('\n    ')}
  }`;
}

/** Checks the value of a oneof that is not adjacent, where its first field is written. */
function checkOneof({ fullName, fields }: Oneof, local: string, scope: FileScope): string {
  const cases = fields.map((field) => `case ${quote(field.key)}:`).join(' ');
  return `switch (${local}?.case) { case undefined: default: ${scope.local('noCase')}(${local}, ${quote(fullName)}); break; ${cases} }`;
}

/** Returns statements that write a field outside of oneofs. */
function write(field: Field, value: string, free: number, scope: FileScope): string[] {
  if (field.presence === 'map') return [encodeMap(field, value, free, scope)];
  return field.presence === 'repeated'
    ? repeated(field, value, free, scope)
    : tagged(field, value, free, scope);
}

function when(condition: string, statements: readonly string[]): string {
  const [first, ...others] = statements;
  if (others.length === 0 && !first?.includes('\n')) return `if (${condition}) ${first}`;
  return `if (${condition}) {\n    ${statements.join('\n    ')}\n  }`;
}

/**
 * Returns whether the code that writes the field checks the presence of the field itself. Lists and maps are
 * usually present, so the call is rarely superfluous.
 */
function takesAbsent(field: Field): boolean {
  return field.presence === 'map' || (field.presence === 'repeated' && hasShortStrings(field));
}

/**
 * Reads all values in one statement, which a compiler parses faster than one statement for each; V8 checks
 * the type of `m` once.
 */
function take(values: readonly string[]): string {
  if (values.length === 0) return '';
  return `  const ${braced(values, '  const  = m;'.length, '  ')} = m;\n`;
}

/** The variables of the function, and the variables inside its statements. */
const own: ReadonlySet<string> = new Set('m writer at limit depth field bytes i count start wide'.split(' '));

interface Written {
  readonly lines: readonly string[];
  readonly values: readonly string[];
}

/** Returns statements that write the fields, and the values that they read from the message. */
function writeFields(message: Message, runs: readonly Run[], room: number, scope: FileScope): Written {
  const values: string[] = [];
  const lines: string[] = [];
  const declared = new Set<Oneof>();
  let free = room;
  for (const run of runs) {
    const { oneof } = run;
    if (oneof !== undefined) {
      free -= runRoom(run);
      const local = variableOf(oneof.key, `o${message.oneofs.indexOf(oneof)}$`, own);
      const isFirst = !declared.has(oneof);
      declared.add(oneof);
      if (isFirst) values.push(binding(oneof.key, local, undefined));
      const cases = run.fields.map((field) => {
        const write = tagged(field, `${local}.value`, free, scope);
        return `case ${quote(field.key)}: ${write.join(' ')} break;`;
      });
      if (run.fields.length === oneof.fields.length) {
        lines.push(wholeOneof(oneof, local, cases, scope));
        continue;
      }
      if (isFirst) lines.push(checkOneof(oneof, local, scope));
      lines.push(`switch (${local}?.case) {\n    ${cases.join('\n    ')}\n  }`);
      continue;
    }
    for (const field of run.fields) {
      free -= fieldRoom(field);
      const local = variableOf(field.key, `v${field.number}$`, own);
      values.push(binding(field.key, local, unsent(field)));
      if (field.presence === 'required')
        lines.push(`if (${local} === undefined) $.missing(${quote(field.fullName)});`);
      const statements = write(field, local, free, scope);
      lines.push(takesAbsent(field) ? statements.join(' ') : when(isSet(field, local, scope), statements));
    }
  }
  if (message.keepsUnknown) lines.push(`at = ${scope.local('writeUnknown')}(writer, at, m, limit);`);
  return { lines, values };
}

export function emitEncode(message: Message, scope: FileScope): string {
  const runs = fieldRuns(message);
  const room = roomOf(runs);
  const { emitted, takesBytes } = scope.encoder(() => writeFields(message, runs, room, scope));
  const body = emitted.lines.join('\n  ');
  const bytes = takesBytes ? '  const { bytes } = writer;\n' : '';
  const parameters: Parameter[] = [
    ['m', message.init],
    ['writer', scope.alias('Writer')],
    ['at', 'number'],
    ['limit', 'number', 'writer.bytes.length'],
    ['depth', 'number', '0'],
    ['field', 'string', quote(message.fullName)],
  ];
  return `${scope.headOf(message, 'encodeTo', parameters)}
  if (${scope.local('noEntry')}(m, writer, at${room === 0 ? '' : ` + ${room}`}, limit, depth, field)) return at;
${bytes}${take(emitted.values)}  ${body}
  return at;
}`;
}
