/** The generated `decodeFrom` function: one switch over whole tags, and the literal that gives every message of the type the same shape. */
import type { Field, Message, Oneof } from '../model/model.ts';
import { formOf, isPlainNumber, packedPrimitive, quote, scalarForm, tagOf, wireTypeOf } from './scalar.ts';
import type { Parameter, Scope } from './scope.ts';
import { fieldType, mapKeyType, valueType } from './shape.ts';

/** Source text of the default of a value. */
export function zeroOf(field: Field, scope: Scope): string {
  const { type } = field;
  if (type.kind === 'message') return `${scope.call(type, 'create')}()`;
  if (type.kind === 'scalar' && formOf(type)?.type === 'bigint') {
    return type.jstype === 'bigint' ? '0n' : type.jstype === 'string' ? "'0'" : '0';
  }
  return formOf(type)?.zero ?? '0';
}

/** What a field holds before anything has been read. */
export function initialOf(field: Field, scope: Scope): string {
  switch (field.presence) {
    case 'repeated':
      return '[]';
    case 'map':
      return `$.newMap${scope.erasable(`<${fieldType(field, scope, 'decoded')}>`)}()`;
    case 'optional':
      return 'undefined';
    case 'required':
      // Found to be missing at the end.
      return scope.sure('undefined');
    default:
      return zeroOf(field, scope);
  }
}

function read(field: Field, end: string): string {
  const { type } = field;
  const form = formOf(type);
  if (type.kind === 'scalar' && type.scalar === 'string' && !field.utf8)
    return `$.readLooseString(source, at, ${end})`;
  const call = `$.read${form === undefined || type.kind === 'enum' ? 'Int32' : form.primitive}(source, at, ${end})`;
  if (form !== undefined && isPlainNumber(type, form)) {
    return `$.read${form.primitive}Number(source, at, ${end})`;
  }
  if (type.kind !== 'scalar' || form?.type !== 'bigint') return call;
  return type.jstype === 'string'
    ? `String(${call})`
    : type.jstype === 'number'
      ? `$.numberOfBigint(source, ${call})`
      : call;
}

function decodeMessage(type: Message, into: string, scope: Scope): string {
  return `${scope.call(type, 'decodeFrom')}(source, source.at, stop, depth + 1${into === '' ? '' : `, ${into}`})`;
}

/** Statements that find where a message in a field starts (`source.at`) and ends (`stop`). */
function opening(field: Field): string {
  if (!field.delimited) return 'const stop = $.readLength(source, at, end);';
  return `const stop = $.readGroup(source, ${field.number}, at, end, depth + 1); const after = source.at; source.at = at;`;
}

/** Where what follows the message starts. */
function behind(field: Field): string {
  return field.delimited ? 'after' : 'stop';
}

function singular(field: Field, scope: Scope): string {
  const { type, oneof } = field;
  const target = `m.${oneof === undefined ? field.key : oneof.key}`;
  const wrap = (value: string) =>
    oneof === undefined ? value : `{ case: ${quote(field.key)}, value: ${value} }`;
  if (type.kind !== 'message') return `${target} = ${wrap(read(field, 'end'))}; at = source.at;`;
  const begin = opening(field);
  // Several occurrences of a message are merged.
  const into =
    oneof === undefined ? target : `${target}.case === ${quote(field.key)} ? ${target}.value : undefined`;
  return `${begin} ${target} = ${wrap(decodeMessage(type, into, scope))}; at = ${behind(field)};`;
}

function repeated(field: Field, scope: Scope): string {
  if (field.type.kind !== 'message') return `m.${field.key}.push(${read(field, 'end')}); at = source.at;`;
  const begin = opening(field);
  return `${begin} m.${field.key}.push(${decodeMessage(field.type, '', scope)}); at = ${behind(field)};`;
}

/** The packed form of a repeated field. */
function run(field: Field): string {
  const primitive = packedPrimitive(field);
  if (primitive !== undefined) return `at = $.readPacked${primitive}(source, at, end, m.${field.key});`;
  return `const stop = $.readLength(source, at, end);
        at = source.at;
        while (at < stop) { m.${field.key}.push(${read(field, 'stop')}); at = source.at; }
        $.readEnd(source, at, stop);`;
}

function map(field: Field, scope: Scope): string {
  const keyForm = scalarForm(field.mapKey ?? 'string');
  const key = `$.read${keyForm.primitive}(source, at, stop)`;
  const asKey = keyForm.type === 'string' || mapKeyType(field) === 'number' ? key : `\`\${${key}}\``;
  const { type } = field;
  const keyZero = keyForm.type === 'boolean' ? "'false'" : keyForm.type === 'bigint' ? "'0'" : keyForm.zero;
  const isMessage = type.kind === 'message';
  const valueCase = isMessage
    ? `const inner = $.readLength(source, at, stop); value = ${scope.call(type, 'decodeFrom')}(source, source.at, inner, depth + 1, value); at = inner;`
    : `value = ${read(field, 'stop')}; at = source.at;`;
  const declared = isMessage ? `${scope.type(type)} | undefined` : valueType(field, scope, 'decoded');
  const assigned = isMessage ? `value ?? ${zeroOf(field, scope)}` : 'value';
  return `const stop = $.readLength(source, at, end);
        let key${scope.erasable(`: ${mapKeyType(field)}`)} = ${keyZero};
        let value${scope.erasable(`: ${declared}`)}${isMessage ? '' : ` = ${zeroOf(field, scope)}`};
        at = source.at;
        while (at < stop) {
          const tag = $.readTag(source, at, stop);
          at = source.at;
          switch (tag) {
            case ${8 | keyForm.wireType}: { key = ${asKey}; at = source.at; break; }
            case ${16 | wireTypeOf(type)}: { ${valueCase} break; }
            default: at = $.skipField(source, tag, at, stop, depth);
          }
        }
        $.readEnd(source, at, stop);
        ${mapKeyType(field) === 'number' ? `$.putNumber(source, m.${field.key}, key, ${assigned});` : `m.${field.key}[key] = ${assigned};`}`;
}

function cases(field: Field, scope: Scope): string[] {
  const wireType = field.presence === 'map' ? 2 : field.delimited ? 3 : wireTypeOf(field.type);
  const body =
    field.presence === 'map'
      ? map(field, scope)
      : field.presence === 'repeated'
        ? repeated(field, scope)
        : singular(field, scope);
  const result = [
    `case ${tagOf(field, wireType)}: { // ${field.name}\n        ${body}\n        break;\n      }`,
  ];
  // Numbers come packed or one by one, whatever the .proto says.
  if (field.presence === 'repeated' && field.type.kind !== 'message' && wireType !== 2) {
    result.push(
      `case ${tagOf(field, 2)}: { // ${field.name}, packed\n        ${run(field)}\n        break;\n      }`,
    );
  }
  return result;
}

/** Keys and values of the literal, in the order of the interface. */
export function literal(
  message: Message,
  value: (field: Field) => string,
  oneofValue: (oneof: Oneof) => string,
): string {
  const done = new Set<Oneof>();
  const entries: string[] = [];
  for (const field of message.fields) {
    if (field.oneof === undefined) entries.push(`${field.key}: ${value(field)}`);
    else if (!done.has(field.oneof)) {
      done.add(field.oneof);
      entries.push(`${field.oneof.key}: ${oneofValue(field.oneof)}`);
    }
  }
  return entries.length === 0 ? '{}' : `{\n    ${entries.join(',\n    ')},\n  }`;
}

export function emitDecode(message: Message, scope: Scope): string {
  const type = message.identifier;
  const initial = literal(
    message,
    (field) => initialOf(field, scope),
    () => '$.unset',
  );
  const start = message.keepsUnknown ? '\n    const start = at;' : '';
  const keep = message.keepsUnknown ? ' $.keepUnknown(m, source, start, at);' : '';
  const missing = message.fields.flatMap((field) =>
    field.presence === 'required'
      ? [`  if (m.${field.key} === undefined) $.missingField(source, end, ${quote(field.fullName)});\n`]
      : [],
  );
  const parameters: Parameter[] = [
    ['source', '$.Source'],
    ['at', 'number'],
    ['end', 'number'],
    ['depth', 'number', '0'],
    ['into?', type],
  ];
  return `${scope.head(message, 'decodeFrom', parameters, type)}
  $.readMessage(source, at, depth, ${quote(message.fullName)});
  const m${scope.erasable(`: ${type}`)} = into ?? ${initial};
  while (at < end) {${start}
    const tag = $.readTag(source, at, end);
    at = source.at;
    switch (tag) {
      ${[...message.fields.flatMap((field) => cases(field, scope)), `default: at = $.skipField(source, tag, at, end, depth);${keep}`].join('\n      ')}
    }
  }
  $.readEnd(source, at, end);
${missing.join('')}  return m;
}`;
}
