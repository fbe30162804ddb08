/**
 * The fifteen scalar types: their form in TypeScript and on the wire, and the runtime's primitives that read
 * and write them.
 */
import type { Field, FieldType, Scalar } from '../model/model.ts';

export { quoted as quote } from '../model/quoted.ts';

export interface ScalarForm {
  /** The type in TypeScript, before `jstype` is applied. */
  readonly type: 'number' | 'bigint' | 'boolean' | 'string' | 'Uint8Array';
  readonly wireType: 0 | 1 | 2 | 5;
  /** Suffix of `readXxx` and `writeXxx`. */
  readonly primitive: string;
  /** Maximum size of a value, or 0 when the size varies. */
  readonly size: number;
  /** The default, as source text. */
  readonly zero: string;
}

const number = (primitive: string, wireType: 0 | 1 | 5, size: number): ScalarForm => ({
  type: 'number',
  wireType,
  primitive,
  size,
  zero: '0',
});
const bigint = (primitive: string, wireType: 0 | 1, size: number): ScalarForm => ({
  type: 'bigint',
  wireType,
  primitive,
  size,
  zero: '0n',
});

const forms: Readonly<Record<Scalar, ScalarForm>> = {
  double: number('Double', 1, 8),
  float: number('Float', 5, 4),
  int32: number('Int32', 0, 10),
  uint32: number('Uint32', 0, 5),
  sint32: number('Sint32', 0, 5),
  fixed32: number('Fixed32', 5, 4),
  sfixed32: number('Sfixed32', 5, 4),
  int64: bigint('Int64', 0, 10),
  uint64: bigint('Uint64', 0, 10),
  sint64: bigint('Sint64', 0, 10),
  fixed64: bigint('Fixed64', 1, 8),
  sfixed64: bigint('Sfixed64', 1, 8),
  bool: { type: 'boolean', wireType: 0, primitive: 'Bool', size: 1, zero: 'false' },
  string: { type: 'string', wireType: 2, primitive: 'String', size: 0, zero: "''" },
  bytes: { type: 'Uint8Array', wireType: 2, primitive: 'Bytes', size: 0, zero: '$.noBytes' },
};

const enumForm: ScalarForm = { type: 'number', wireType: 0, primitive: 'Enum', size: 10, zero: '0' };

export function scalarForm(scalar: Scalar): ScalarForm {
  return forms[scalar];
}

/** Returns undefined for messages. */
export function formOf(type: FieldType): ScalarForm | undefined {
  return type.kind === 'message' ? undefined : type.kind === 'enum' ? enumForm : forms[type.scalar];
}

/**
 * Returns whether a 64-bit varint is held as a number; the primitives of such fields create no bigint for
 * small values.
 */
export function isPlainNumber(type: FieldType, form: ScalarForm): boolean {
  return (
    type.kind === 'scalar' &&
    type.jstype === 'number' &&
    (form.primitive === 'Int64' || form.primitive === 'Uint64')
  );
}

/**
 * Returns the suffix of `readRunXxx` and `writePackedXxx`, for lists that have these primitives. Such lists
 * may contain numbers and booleans; bigints that are converted to strings or numbers are excluded.
 */
export function packedPrimitive({ type }: Field): string | undefined {
  if (type.kind === 'enum') return 'Int32';
  const form = formOf(type);
  if (form === undefined || form.size === 0) return undefined;
  const converted = type.kind === 'scalar' && form.type === 'bigint' && type.jstype !== 'bigint';
  return converted ? undefined : form.primitive;
}

export function wireTypeOf(type: FieldType): number {
  return formOf(type)?.wireType ?? 2;
}

/** Returns the tag bytes of field `number` with this wire type. */
export function tagBytes(number: number, wireType: number): number[] {
  const bytes: number[] = [];
  let tag = ((number << 3) | wireType) >>> 0;
  for (; tag > 127; tag >>>= 7) bytes.push((tag & 127) | 128);
  return [...bytes, tag];
}

export function tagOf(field: Field, wireType: number): number {
  return ((field.number << 3) | wireType) >>> 0;
}
