/**
 * Converts `[default = …]` to the text in a descriptor. The linker calls it once the field's type is known.
 */

import { escapeBytes } from '../../runtime/codec/textformat/escape.ts';
import type { FieldDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { labels, typeName } from '../descriptor/types.ts';
import { suggestion } from '../diagnostic.ts';
import { floatOf, integerOf, integerRange } from '../options/number.ts';
import type { OptionValue } from '../source/parsed.ts';
import type { Schema, SchemaFile } from './schema.ts';

/** Returns the text, or undefined after reporting an error. */
export function defaultText(
  schema: Schema,
  file: SchemaFile,
  field: FieldDescriptorProto,
  value: OptionValue,
): string | undefined {
  const refuse = (message: string): undefined => {
    file.reporter.report(value.token, message);
    return undefined;
  };
  const { syntax } = file.descriptor;
  const type = typeName(field.type);
  if (syntax === 'proto3') return refuse('proto3 has no default values');
  if (field.label === labels.repeated) return refuse('a repeated field has no default value');
  switch (type) {
    // The unknown type has already been reported.
    case undefined:
      return undefined;
    case 'message':
    case 'group':
      return refuse('a message has no default value');
    case 'string':
    case 'bytes':
      if (value.kind !== 'string') return refuse(`the default of a ${type} field must be written in quotes`);
      return type === 'bytes' ? escapeBytes(value.bytes) : value.bytes.toString('utf8');
    case 'bool':
      if (value.kind !== 'name' || (value.text !== 'true' && value.text !== 'false'))
        return refuse('the default of a bool field must be true or false');
      return value.text;
    case 'enum': {
      const found = schema.get(field.typeName ?? '');
      if (found?.kind !== 'enum') return undefined;
      const names = found.descriptor.value.map(({ name }) => name ?? '');
      if (value.kind === 'name' && names.includes(value.text)) return value.text;
      return refuse(
        `${value.token.text} is not a value of ${found.fullName}${suggestion(value.token.text, names)}`,
      );
    }
    case 'float':
    case 'double': {
      const number = floatOf(value, type);
      return number === undefined
        ? refuse(`the default of a ${type} field must be a number, inf or nan`)
        : floatText(number, type);
    }
    default: {
      const number = integerOf(value, type);
      const [least, most] = integerRange(type);
      return number === undefined
        ? refuse(`the default of this field must be a whole number from ${least} to ${most}`)
        : String(number);
    }
  }
}

/** Returns the shortest text that parses as the same number, in C's form (`1e+20`, `inf`). */
function floatText(value: number, type: 'float' | 'double'): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value < 0 ? '-inf' : 'inf';
  const exact = (digits: number): string => {
    const [mantissa = '', exponent = '0'] = value.toExponential(digits - 1).split('e');
    const power = Number(exponent);
    const trimmed = mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa;
    if (power >= -4 && power < digits) {
      const fixed = value.toFixed(Math.max(0, digits - 1 - power));
      return fixed.includes('.') ? fixed.replace(/\.?0+$/, '') : fixed;
    }
    return `${trimmed}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
  };
  if (Object.is(value, -0)) return '-0';
  const same = (text: string) => (type === 'float' ? Math.fround(Number(text)) : Number(text)) === value;
  const short = exact(type === 'float' ? 6 : 15);
  return same(short) ? short : exact(type === 'float' ? 9 : 17);
}
