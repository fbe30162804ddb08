/**
 * Emits the `decodeFrom` function: one switch over whole tags, and the object literal that gives every
 * message of the type the same shape. All code that reads or skips a field leaves the position behind the
 * field in `source.at`.
 */
import type { Field, Message } from '../../model/model.ts';
import { packedPrimitive, quote, tagOf, wireTypeOf } from '../scalar.ts';
import type { FileScope, Parameter } from '../scope.ts';
import { braced, entry, propertiesOf } from './binding.ts';
import { decodeMap } from './map.ts';
import { read, zeroOf } from './value.ts';

/** Returns the value of a field before it has been read. */
export function initialOf(field: Field, scope: FileScope): string {
  switch (field.presence) {
    case 'repeated':
      return '[]';
    case 'map':
      return `${scope.local('newMap')}()`;
    case 'optional':
      return 'undefined';
    case 'required':
      // The generated code detects the absence of a required field at the end of the message.
      return scope.sure('undefined');
    default:
      return zeroOf(field, scope);
  }
}

/**
 * Returns an expression that reads a message. The message lies behind a length, or between two tags; the
 * second tag is skipped afterwards. Arguments are evaluated from left to right.
 */
function decodeMessage(field: Field, type: Message, into: string, scope: FileScope): string {
  const extent = field.delimited ? 'at, stop' : `${scope.local('readStart')}(source, at, end), source.stop`;
  return `${scope.call(type, 'decodeFrom')}(source, ${extent}, depth + 1${into === '' ? '' : `, ${into}`})`;
}

/** Returns a switch case that reads a message by `statement`. */
function messageCase(field: Field, statement: string): string {
  if (!field.delimited) return `${statement} break;`;
  return `{ const stop = $.readGroup(source, ${field.number}, at, end, depth + 1); const behind = source.at; ${statement} source.at = behind; break; }`;
}

function singular(field: Field, scope: FileScope): string {
  const { type, oneof } = field;
  const target = `m.${oneof === undefined ? field.key : oneof.key}`;
  const wrap = (value: string) =>
    oneof === undefined ? value : `${scope.local('choice')}(${quote(field.key)}, ${value})`;
  if (type.kind !== 'message') return `${target} = ${wrap(read(field, 'end', scope))}; break;`;
  // If a message field occurs several times, its values are merged.
  const into =
    oneof === undefined ? target : `${target}.case === ${quote(field.key)} ? ${target}.value : undefined`;
  return messageCase(field, `${target} = ${wrap(decodeMessage(field, type, into, scope))};`);
}

function repeated(field: Field, scope: FileScope): string {
  if (field.type.kind !== 'message') return `m.${field.key}.push(${read(field, 'end', scope)}); break;`;
  return messageCase(field, `m.${field.key}.push(${decodeMessage(field, field.type, '', scope)});`);
}

/** Reads the packed form of a repeated field. */
function run(field: Field, scope: FileScope): string {
  const primitive = packedPrimitive(field);
  if (primitive !== undefined)
    return `m.${field.key} = $.readRun${primitive}(source, at, end, m.${field.key}); break;`;
  return `{
        const stop = ${scope.local('readLength')}(source, at, end);
        for (at = source.at; at < stop; at = source.at) m.${field.key}.push(${read(field, 'stop', scope)});
        ${scope.local('readEnd')}(source, at, stop);
        break;
      }`;
}

/** Returns the switch cases of a field. Each case leaves the position behind the field in `source.at`. */
function cases(field: Field, scope: FileScope): string[] {
  const wireType = field.presence === 'map' ? 2 : field.delimited ? 3 : wireTypeOf(field.type);
  const emit = field.presence === 'map' ? decodeMap : field.presence === 'repeated' ? repeated : singular;
  const result = [`case ${tagOf(field, wireType) | 0}: ${emit(field, scope)}`];
  // Decoders accept packed and unpacked numbers, independent of the declaration in the .proto.
  if (field.presence === 'repeated' && field.type.kind !== 'message' && wireType !== 2)
    result.push(`case ${tagOf(field, 2) | 0}: ${run(field, scope)}`);
  return result;
}

export function emitDecode(message: Message, scope: FileScope): string {
  const type = message.identifier;
  const initial = propertiesOf(message).map(({ key, field, oneof }) =>
    entry(key, oneof === undefined ? initialOf(field, scope) : scope.local('unset')),
  );
  const start = message.keepsUnknown ? '\n    const start = source.at;' : '';
  const keep = message.keepsUnknown ? ' $.keepUnknown(m, source, start, source.at);' : '';
  const missing = message.fields.flatMap((field) =>
    field.presence === 'required'
      ? [`  if (m.${field.key} === undefined) $.missingField(source, end, ${quote(field.fullName)});\n`]
      : [],
  );
  const parameters: Parameter[] = [
    ['source', scope.alias('Source')],
    ['at', 'number'],
    ['end', 'number'],
    ['depth', 'number', '0'],
    ['m', type, braced(initial, Number.POSITIVE_INFINITY, '')],
  ];
  const skip = `default: ${scope.local('skipUnknown')}(source, at, end, depth);${keep}`;
  return `${scope.headOf(message, 'decodeFrom', parameters)}
  ${scope.local('enterMessage')}(source, at, depth, ${quote(message.fullName)});
  while (source.at < end) {${start}
    at = ${scope.local('nextTag')}(source, end);
    switch (source.tag) {
      ${[...message.fields.flatMap((field) => cases(field, scope)), skip].join('\n      ')}
    }
  }
  ${scope.local('leaveMessage')}(source, end);
${missing.join('')}  return m;
}`;
}
