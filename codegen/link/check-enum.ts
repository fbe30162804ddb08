/**
 * Checks the rules of enums. check.ts calls it for each enum of a file.
 */
import type { EnumDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import { decodeOptions } from '../options/tree.ts';
import { checkRanges, checkReservedNames } from './check-ranges.ts';
import { closed, type FeatureScope } from './features.ts';
import type { Schema, SchemaFile } from './schema.ts';

type Report = (path: string, part: number | undefined, message: string, severity?: 'warning') => void;

/** The field numbers of EnumOptions.allow_alias and of its deprecated_legacy_json_field_conflicts. */
const aliasField = 2;
const legacyField = 6;

/**
 * Returns the name of a value without the prefix of its enum, as languages with scoped enums write it. This
 * part of the name must be unique.
 */
function bareName(type: string, value: string): string {
  const wanted = type.replaceAll('_', '').toLowerCase();
  let matched = 0;
  let at = 0;
  for (; at < value.length && matched < wanted.length; at++) {
    const char = value[at]?.toLowerCase();
    if (char === '_') continue;
    if (char !== wanted[matched]) break;
    matched++;
  }
  const rest = matched === wanted.length ? value.slice(at).replace(/^_+/, '') : '';
  // After removing underscores, only the capital at the start of each word remains.
  return (rest === '' ? value : rest)
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase())
    .join('');
}

function checkBareNames(type: EnumDescriptorProto, path: string, lenient: boolean, report: Report): void {
  const seen = new Map<string, { name: string; number: number }>();
  type.value.forEach(({ name = '', number = 0 }, i) => {
    const bare = bareName(type.name ?? '', name);
    const other = seen.get(bare);
    if (other === undefined) seen.set(bare, { name, number });
    // Similar names are allowed when they belong to the same value.
    else if (other.name !== name && other.number !== number)
      report(
        `${path},2,${i}`,
        1,
        `${other.name} and ${name} have the same name without the prefix ${type.name}`,
        lenient ? 'warning' : undefined,
      );
  });
}

export function checkEnum(
  schema: Schema,
  { descriptor: { syntax } }: SchemaFile,
  type: EnumDescriptorProto,
  path: string,
  features: FeatureScope,
  report: Report,
): void {
  const options = decodeOptions(schema, 'EnumOptions', type.options);
  const alias = options?.flag(aliasField) === true;
  const isClosed = features.get('enumType') === closed;
  const numbers = new Map<number, string>();
  if (type.value.length === 0) report(path, 1, `enum ${type.name} has no values`);
  type.value.forEach(({ name = '', number = 0 }, i) => {
    const valuePath = `${path},2,${i}`;
    if (i === 0 && number !== 0 && !isClosed)
      report(
        valuePath,
        2,
        `the first value of enum ${type.name} must be 0${syntax === 'proto3' ? ' in proto3' : ', or its enum_type CLOSED'}`,
      );
    if (number !== (number | 0)) report(valuePath, 2, `enum value ${number} does not fit 32 bits`);
    const other = numbers.get(number);
    if (other !== undefined && !alias)
      report(
        valuePath,
        2,
        `the number ${number} is used by ${other} already; option allow_alias = true allows it`,
      );
    numbers.set(number, name);
    if (type.reservedRange.some(({ start = 0, end = 0 }) => number >= start && number <= end))
      report(valuePath, 2, `the number ${number} is reserved in enum ${type.name}`);
    if (type.reservedName.includes(name))
      report(valuePath, 1, `the name ${name} is reserved in enum ${type.name}`);
  });
  if (alias && numbers.size === type.value.length && type.value.length > 0)
    report(path, 1, `no two values of enum ${type.name} have the same number: remove option allow_alias`);
  checkBareNames(type, path, isClosed || options?.flag(legacyField) === true, report);
  const ranges = type.reservedRange.map(({ start = 0, end = 0 }, i) => {
    return { start, end, what: 'reserved range', path: `${path},4,${i}` } as const;
  });
  checkRanges(ranges, (at, message) => report(at, undefined, message));
  checkReservedNames(type.reservedName, `${path},5`, (at, message) => report(at, undefined, message));
}
