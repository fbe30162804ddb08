/**
 * Emits map fields in generated encoders and decoders, as a call of a function that the file contains once
 * for each pair of types. A map needs as much code as the rest of a message, and the cost of generated code
 * grows with the text that a compiler has to parse. Therefore the file shares these functions. encode.ts and
 * decode.ts call it.
 */
import type { Field } from '../../model/model.ts';
import { formOf, quote, scalarForm, tagBytes, tagOf, wireTypeOf } from '../scalar.ts';
import type { FileScope, Parameter } from '../scope.ts';
import { fieldType, mapKeyType, valueType } from '../shape.ts';
import { element, fixed, lengthBytes, listed, widening } from './room.ts';
import { limitOf, read, writeValue, zeroOf } from './value.ts';

const keyForm = (field: Field) => scalarForm(field.mapKey ?? 'string');

/**
 * Returns a text that distinguishes maps which need functions of their own. The scope handles equal names of
 * different types.
 */
function typesOf(field: Field, scope: FileScope): string {
  const { type, mapKey, utf8, array } = field;
  const value =
    array !== undefined
      ? `${array}Array`
      : type.kind === 'scalar'
        ? type.scalar
        : scope.type(type).replace('.', '$');
  return `${mapKey}_${value}${utf8 ? '' : '$loose'}`;
}

const hasShortTag = (field: Field): boolean => tagOf(field, 2) < 128;

/**
 * Writes the key of an entry in the type of the key. In JavaScript every key is a string. Keys are converted
 * to numbers before the entry is begun.
 */
function writeKey(field: Field, free: number, scope: FileScope): string {
  const form = keyForm(field);
  const write = 'bytes, at + 1';
  switch (form.type) {
    case 'string':
      return `${scope.local('writeString')}(writer, at + 1, key, ${limitOf(free)}, field)`;
    case 'boolean':
      return `${scope.local('writeBool')}(${write}, $.boolKey(key, field), field)`;
    case 'bigint':
      return `${scope.local(`write${form.primitive}`)}(${write}, $.bigintOfString(key, field), field)`;
    default:
      return `${scope.local(`write${form.primitive}`)}(${write}, number, field)`;
  }
}

/**
 * Returns the value of an entry with a numeric key. V8 finds the value faster by the number than by its text.
 * Negative numbers are an exception, because they are keys only as text.
 */
function ofNumber(field: Field): string {
  const unsigned = field.mapKey === 'uint32' || field.mapKey === 'fixed32';
  return unsigned ? 'map[number]' : 'map[number < 0 ? key : number]';
}

/**
 * Returns statements that write the entry of `key`, in a function that has `bytes`. The end of its room,
 * `limit`, already excludes the bytes behind the entry and the bytes that closing it may need.
 */
function writeEntry(field: Field, value: string, scope: FileScope): string {
  const { type } = field;
  const keyTag = tagBytes(1, keyForm(field).wireType)[0];
  const valueTag = tagBytes(2, wireTypeOf(type))[0];
  const valueRoom = 1 + (type.kind === 'message' ? lengthBytes : fixed(field));
  const outOfLine =
    type.kind === 'message' ? scope.mayBeOutOfLine(type) : formOf(type)?.primitive === 'Bytes';
  const heldNow = outOfLine ? 'const held = writer.held; ' : '';
  const close =
    listed(field) > 0
      ? 'bytes[start] = at - start - 1;'
      : outOfLine
        ? `at = ${scope.local('closeLength')}(writer, start, held, at);`
        : `at = ${scope.local('closeSolid')}(bytes, start, at);`;
  const put = scope.encoder(() => writeValue(field, value, 1, 0, scope, 'field')).emitted;
  const start = hasShortTag(field)
    ? 'bytes[at] = tag; const start = at + 1;'
    : `const start = ${scope.local('writeVarint')}(bytes, at, tag);`;
  return `${start}
  ${heldNow}at = start + 1;
  bytes[at] = ${keyTag}; at = ${writeKey(field, valueRoom, scope)};
  bytes[at] = ${valueTag}; at = ${put};
  ${close}`;
}

/**
 * Emits a function that writes one entry with a string key, and returns its name. Both loops that write a map
 * call it, so the code of an entry is emitted once.
 */
function shareEntry(field: Field, name: string, common: readonly Parameter[], scope: FileScope): string {
  const parameters: Parameter[] = [...common, ['key', 'string'], ['value', valueType(field, scope, 'init')]];
  const body = `  const bytes = writer.bytes;
  ${writeEntry(field, 'value', scope)}
  return at;`;
  return scope.share(`encodeEntry_${name}`, parameters, 'number', body);
}

/** Returns a statement that writes the map, if the map is present. */
export function encodeMap(field: Field, value: string, free: number, scope: FileScope): string {
  const name = `${typesOf(field, scope)}${hasShortTag(field) ? '' : '_longTag'}`;
  const nests = field.type.kind === 'message';
  const common: Parameter[] = [
    ['writer', '$.Writer'],
    ['at', 'number'],
    ['tag', 'number'],
    ['limit', 'number'],
    ['field', 'string'],
    ...(nests ? [['depth', 'number'] as const] : []),
  ];
  const loop = `for (let i = 0; i < keys.length${listed(field) > 0 ? '' : ' && !writer.full'}; i++)`;
  const key = `const key = ${scope.sure('keys[i]')};`;
  const numeric = keyForm(field).type === 'number';
  const found = scope.sure(numeric ? ofNumber(field) : 'map[key]');
  let body: string;
  if (field.mapKey === 'string') {
    const entry = shareEntry(field, name, common, scope);
    const put = `at = ${entry}(${common.map(([each]) => each).join(', ')}, key, ${found});`;
    // A loop of the first form is faster as long as it runs only over ordinary objects, because V8 then knows
    // where the value of each key is. It must not run over decoded maps, which are hash tables.
    body = `  if (${scope.local('checkMap')}(map, field)) {
    for (const key in map) { if (writer.full) break; ${put} }
  } else {
    const keys = ${scope.local('mapKeys')}(map, field);
    ${loop} { ${key} ${put} }
  }
  return at;`;
  } else {
    const fits = () =>
      `if (at + keys.length * ${listed(field)} > limit) return ${scope.local('noRoom')}(writer, at);\n  `;
    body = `  const bytes = writer.bytes;
  const keys = ${scope.local('mapKeys')}(map, field);
  ${listed(field) > 0 ? fits() : ''}${loop} {
    ${key}${numeric ? `\n    const number = ${scope.local('numberKey')}(key, field);` : ''}
    ${writeEntry(field, found, scope).replaceAll('\n', '\n  ')}
  }
  return at;`;
  }
  const parameters: Parameter[] = [...common, ['map', `${fieldType(field, scope, 'init')} | undefined`]];
  const whole = `  if (map === undefined) return at;\n${body}`;
  const encode = scope.share(`encodeMap_${name}`, parameters, 'number', whole);
  const behind = listed(field) > 0 ? free : free + widening + element(field);
  const depth = nests ? 'depth, ' : '';
  return `at = ${encode}(writer, at, ${tagOf(field, 2)}, ${limitOf(behind)}, ${quote(field.fullName)}, ${depth}${value});`;
}

/** Returns a statement that reads an entry into the map. */
export function decodeMap(field: Field, scope: FileScope): string {
  const form = keyForm(field);
  const { type } = field;
  const key = `${scope.local(`read${form.primitive}`)}(source, at, stop)`;
  const asKey = form.type === 'string' || mapKeyType(field) === 'number' ? key : `\`\${${key}}\``;
  const keyZero = form.type === 'boolean' ? "'false'" : form.type === 'bigint' ? "'0'" : form.zero;
  const isMessage = type.kind === 'message';
  const readLength = scope.local('readLength');
  const takeValue = isMessage
    ? `{ const inner = ${readLength}(source, at, stop); value = ${scope.call(type, 'decodeFrom')}(source, source.at, inner, depth + 1, value); }`
    : `value = ${read(field, 'stop', scope)};`;
  const declared = isMessage ? `${scope.type(type)} | undefined` : valueType(field, scope, 'decoded');
  const assigned = isMessage ? `value ?? ${zeroOf(field, scope)}` : 'value';
  const parameters: Parameter[] = [
    ['source', '$.Source'],
    ['at', 'number'],
    ['end', 'number'],
    ['depth', 'number'],
    ['map', fieldType(field, scope, 'decoded')],
  ];
  const body = `  const stop = ${readLength}(source, at, end);
  let key${scope.erasable(`: ${mapKeyType(field)}`)} = ${keyZero};
  let value${scope.erasable(`: ${declared}`)}${isMessage ? '' : ` = ${zeroOf(field, scope)}`};
  at = source.at;
  while (at < stop) {
    const tag = ${scope.local('readTag')}(source, at, stop);
    at = source.at;
    if (tag === ${8 | form.wireType}) key = ${asKey};
    else if (tag === ${16 | wireTypeOf(type)}) ${takeValue}
    else ${scope.local('skipField')}(source, tag, at, stop, depth);
    at = source.at;
  }
  ${scope.local('readEnd')}(source, at, stop);
  ${mapKeyType(field) === 'number' ? `$.putNumber(source, map, key, ${assigned});` : `map[key] = ${assigned};`}`;
  const decode = scope.share(`decodeEntry_${typesOf(field, scope)}`, parameters, 'void', body);
  return `${decode}(source, at, end, depth, m.${field.key}); break;`;
}
