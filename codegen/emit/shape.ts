/**
 * Emits the TypeScript types of fields, oneofs and maps, and the interfaces `Foo` and `FooInit` made of them.
 */
import type { Documented, Field, Message, Oneof } from '../model/model.ts';
import { docLines } from './comment.ts';
import { formOf, quote } from './scalar.ts';
import type { FileScope } from './scope.ts';
import { exportedType, type Statement } from './statement.ts';

/** decoded: the result of decode. init: the argument of encode. */
type Side = 'decoded' | 'init';

/** Returns the type of one value of the field. */
export function valueType(field: Field, scope: FileScope, side: Side): string {
  const { type } = field;
  if (type.kind === 'message') return side === 'init' ? scope.init(type) : scope.type(type);
  if (type.kind === 'enum') return scope.type(type);
  if (field.array !== undefined) return `${field.array}Array`;
  const plain = formOf(type)?.type ?? 'never';
  return plain === 'bigint' ? type.jstype : plain;
}

/** Returns the key type of a map: number if a number can hold the keys, otherwise string. */
export function mapKeyType(field: Field): 'string' | 'number' {
  const key = field.mapKey;
  return key === undefined || key === 'string' || key === 'bool' || key.endsWith('64') ? 'string' : 'number';
}

export function fieldType(field: Field, scope: FileScope, side: Side): string {
  const value = valueType(field, scope, side);
  if (field.presence === 'repeated') return `${side === 'init' ? 'readonly ' : ''}${value}[]`;
  if (field.presence === 'map') {
    // An index signature would give a compiler three more syntax nodes.
    const record = `Record<${mapKeyType(field)}, ${value}>`;
    return side === 'init' ? `Readonly<${record}>` : record;
  }
  return value;
}

function oneofType(oneof: Oneof, scope: FileScope, side: Side): string {
  const cases = oneof.fields.map((field) => {
    const [key, value] = [quote(field.key), valueType(field, scope, side)];
    const doc = docLines(field, '    ');
    // Writes the same type, so that editors show the property's comment.
    return doc === ''
      ? `${scope.alias('Case')}<${key}, ${value}>`
      : `{\n    readonly case: ${key};\n${doc}    readonly value: ${value};\n  }`;
  });
  return [...cases, scope.alias('Unset')].join(' | ');
}

interface Property extends Documented {
  readonly key: string;
  readonly type: string;
  readonly optional: boolean;
}

/** Returns the properties in the order of their (lowest) field numbers. */
function properties(message: Message, scope: FileScope, side: Side): Property[] {
  const result: Property[] = [];
  const done = new Set<Oneof>();
  for (const field of message.fields) {
    const { oneof, key, comment, deprecated } = field;
    if (oneof === undefined) {
      const optional = side === 'init' ? field.presence !== 'required' : field.presence === 'optional';
      result.push({ key, type: fieldType(field, scope, side), optional, comment, deprecated });
    } else if (!done.has(oneof)) {
      done.add(oneof);
      const decoded = oneofType(oneof, scope, 'decoded');
      const own = oneofType(oneof, scope, side);
      // If both types are equal, the type is declared once, so that a compiler has less to parse.
      const type = side === 'init' && own === decoded ? `${message.identifier}[${quote(oneof.key)}]` : own;
      result.push({ ...oneof, type, optional: side === 'init' });
    }
  }
  if (message.keepsUnknown) {
    const about = { comment: 'Fields that this version does not know, as they came.', deprecated: false };
    result.push({ key: '$unknownFields', type: 'Uint8Array', optional: true, ...about });
  }
  return result;
}

export function emitInterface(message: Message, scope: FileScope, side: Side): Statement {
  const about =
    side === 'init'
      ? {
          comment: `The argument of ${message.identifier}.encode and create, in which every field is optional.`,
          deprecated: message.deprecated,
        }
      : message;
  const lines = properties(message, scope, side).map((property) => {
    const { key, type, optional } = property;
    return `${docLines(property, '  ')}  ${key}${optional ? '?' : ''}: ${type}${optional ? ' | undefined' : ''};\n`;
  });
  const name = side === 'init' ? message.init : message.identifier;
  return exportedType(`${docLines(about, '')}export interface ${name} {\n${lines.join('')}}`, scope);
}
