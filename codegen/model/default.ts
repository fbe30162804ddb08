/**
 * Returns explicit defaults of proto2 and editions in TypeScript. It is called while the model is built.
 */

import { bytesOfQuoted } from '../../runtime/codec/textformat/escape.ts';
import type { FieldDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import type { FieldType } from './model.ts';
import { numberText, quoted } from './quoted.ts';

const numbers: Readonly<Record<string, string>> = {
  inf: 'Number.POSITIVE_INFINITY',
  '-inf': 'Number.NEGATIVE_INFINITY',
  nan: 'Number.NaN',
  '-nan': 'Number.NaN',
};

/** Returns the reason why TypeScript cannot express the default, or an empty text when it can. */
export function defaultProblem({ defaultValue }: FieldDescriptorProto, type: FieldType): string {
  if (defaultValue === undefined || type.kind !== 'scalar' || type.jstype !== 'number') return '';
  if (!type.scalar.endsWith('64') || Number.isSafeInteger(Number(defaultValue))) return '';
  return `default ${defaultValue} does not fit a number: give the field jstype = JS_STRING`;
}

/** Returns the source text of the default in the field's descriptor, or undefined when it has no default. */
export function defaultLiteral({ defaultValue }: FieldDescriptorProto, type: FieldType): string | undefined {
  if (defaultValue === undefined || type.kind === 'message') return undefined;
  if (type.kind === 'enum') return String(type.values.find(({ name }) => name === defaultValue)?.number ?? 0);
  switch (type.scalar) {
    case 'string':
      return quoted(defaultValue);
    case 'bytes': {
      const bytes = bytesOfQuoted(defaultValue, 'replaced');
      return `Uint8Array.of(${typeof bytes === 'string' ? '' : [...bytes].join(', ')})`;
    }
    case 'bool':
      return defaultValue;
    case 'float':
    case 'double':
      return numbers[defaultValue] ?? numberText(Number(defaultValue));
    default:
      if (!type.scalar.endsWith('64')) return defaultValue;
      return type.jstype === 'bigint'
        ? `${defaultValue}n`
        : type.jstype === 'string'
          ? `'${defaultValue}'`
          : defaultValue;
  }
}
