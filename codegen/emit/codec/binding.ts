/**
 * Fields as variables of a function: `{ id, name: v2 = '' }`. By their own names, which is the least to read
 * for people and compilers, unless that is no name for a variable or means something else there. Called by
 * create.ts and encode.ts.
 */
import type { Field, Message, Oneof } from '../../model/model.ts';
import { isVariable } from '../../model/names.ts';

interface Property {
  readonly key: string;
  /** A name that no property has. */
  readonly spare: string;
  /** The field, or the first of the oneof. */
  readonly field: Field;
  readonly oneof: Oneof | undefined;
}

/** In the order of the interface. */
export function propertiesOf(message: Message): Property[] {
  const done = new Set<Oneof>();
  return message.fields.flatMap((field): Property[] => {
    const { oneof } = field;
    if (oneof === undefined) return [{ key: field.key, spare: `v${field.number}$`, field, oneof }];
    if (done.has(oneof)) return [];
    done.add(oneof);
    return [{ key: oneof.key, spare: `o${done.size}$`, field, oneof }];
  });
}

/** The variable for a property; `spare` where its own name is none for a variable, or among `others`. */
export function variableOf(key: string, spare: string, others: ReadonlySet<string>): string {
  return isVariable(key) && !others.has(key) ? key : spare;
}

/** Element of a pattern, with the value of what is absent. */
export function binding(key: string, variable: string, initial: string | undefined): string {
  return `${key === variable ? key : `${key}: ${variable}`}${initial === undefined ? '' : ` = ${initial}`}`;
}

/** Entry of a literal. A field may have the name of its value: `false: false`, which has no short form. */
export function entry(key: string, value: string): string {
  return key === value && isVariable(key) ? key : `${key}: ${value}`;
}

const columns = 120;

/**
 * What stands between braces: on the line that has so many characters without it, on one of its own, or on
 * many.
 */
export function braced(parts: readonly string[], before: number, indent: string): string {
  if (parts.length === 0) return '{}';
  const line = parts.join(', ');
  if (before + line.length + 4 <= columns) return `{ ${line} }`;
  const own = `${indent}  ${line},`;
  return `{\n${own.length <= columns ? own : `${indent}  ${parts.join(`,\n${indent}  `)},`}\n${indent}}`;
}
