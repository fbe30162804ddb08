/**
 * Fields as variables of a function: `{ id, name: v2 = '' }`. Variables have the fields' own names, which is
 * the shortest code for people and compilers. An exception is a name that is not valid for a variable or has
 * another meaning in the function. create.ts and encode.ts call it.
 */
import type { Field, Message, Oneof } from '../../model/model.ts';
import { isVariable } from '../../model/names.ts';

interface Property {
  readonly key: string;
  /** A name that is different from the names of all properties. */
  readonly spare: string;
  /** The field, or the first field of the oneof. */
  readonly field: Field;
  readonly oneof: Oneof | undefined;
}

/** Returns the properties of a message, in the order of its interface. */
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

/**
 * Returns the variable for a property: `spare` when its own name is not valid for a variable, or is among
 * `others`.
 */
export function variableOf(key: string, spare: string, others: ReadonlySet<string>): string {
  return isVariable(key) && !others.has(key) ? key : spare;
}

/** Returns an element of a destructuring pattern, with the value for an absent property. */
export function binding(key: string, variable: string, initial: string | undefined): string {
  return `${key === variable ? key : `${key}: ${variable}`}${initial === undefined ? '' : ` = ${initial}`}`;
}

/**
 * Returns an entry of an object literal. A field may have the name of its value: `false: false` has no short
 * form.
 */
export function entry(key: string, value: string): string {
  return key === value && isVariable(key) ? key : `${key}: ${value}`;
}

const columns = 120;

/**
 * Returns a list in braces. The list is written on the current line, which already has `before` characters,
 * or on a line of its own, or on one line for each element.
 */
export function braced(parts: readonly string[], before: number, indent: string): string {
  if (parts.length === 0) return '{}';
  const line = parts.join(', ');
  if (before + line.length + 4 <= columns) return `{ ${line} }`;
  const own = `${indent}  ${line},`;
  return `{\n${own.length <= columns ? own : `${indent}  ${parts.join(`,\n${indent}  `)},`}\n${indent}}`;
}
