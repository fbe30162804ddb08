/**
 * Converts uses of enums from other generators. protobuf-es leaves out the prefix that all values of an enum
 * share, and both protobuf-es and ts-proto have enums with names by number. It is used by
 * generated-imports.ts.
 */
import { Node } from 'ts-morph';
import type { FileChange } from './file-change.ts';
import { type Exported, valueNamed } from './generated.ts';
import { generatorPage } from './left.ts';
import type { Reference } from './references.ts';

/** The local names under which the file imports the generated enum. */
interface EnumNames {
  /** Returns the name of the object with the values. */
  readonly values: () => string;
  /** Returns the name of the table of names by number, such as `MoodNames`. */
  readonly table: () => string;
}

/** Converts one use of the enum `found`. Returns false when no rule for enums applies to the use. */
export function convertEnum(
  file: FileChange,
  reference: Reference,
  found: Exported & { readonly values: readonly string[] },
  names: EnumNames,
): boolean {
  const { node, name } = reference;
  const parent = node.getParentOrThrow();
  if (name !== found.name && /Schema$/.test(name)) {
    schema(file, reference, found.name);
    return true;
  }
  if (Node.isPropertyAccessExpression(parent) && parent.getExpression() === node) {
    const value = known(file, reference, found.values, parent.getName());
    if (value === undefined) return true;
    file.convert(reference, names.values());
    if (value !== parent.getName()) file.replaceNode(parent.getNameNode(), value);
    return true;
  }
  if (Node.isQualifiedName(parent) && parent.getLeft() === node) {
    const value = known(file, reference, found.values, parent.getRight().getText());
    if (value === undefined) return true;
    file.convert(reference);
    file.replaceNode(parent, `typeof ${names.values()}.${value}`);
    return true;
  }
  if (Node.isElementAccessExpression(parent) && parent.getExpression() === node)
    return element(file, reference, found, names);
  if (!reference.inType && !Node.isTypeNode(parent))
    file.leave(
      node,
      `${name} is used as a value: it has no names by number, which are in ${found.name}Names`,
      generatorPage,
    );
  return false;
}

/** Blocks the file, because this package has no counterpart of an enum's schema object. */
function schema(file: FileChange, { node, name }: Reference, local: string): void {
  const parent = node.getParentOrThrow();
  const member = Node.isPropertyAccessExpression(parent) ? `.${parent.getName()}` : '';
  const instead =
    member === '.typeName'
      ? 'write the full name of the enum as a text'
      : `${local} has the values, and ${local}Names their names`;
  file.block('messages', node, `${name}${member}: enums have no schema here; ${instead}`, generatorPage);
}

/**
 * Returns the name of an enum's value in the generated code. Blocks the file when the enum does not have it.
 */
function known(
  file: FileChange,
  { node, name }: Reference,
  values: readonly string[],
  value: string,
): string | undefined {
  const found = valueNamed(values, value);
  if (found === undefined)
    file.block(
      'messages',
      node,
      `${name}.${value} is not a value of the enum in the .proto file`,
      generatorPage,
    );
  return found;
}

/** Converts `Mood['MOOD_GOOD']`, which stays, and `Mood[number]`, which becomes `MoodNames[number]`. */
function element(
  file: FileChange,
  reference: Reference,
  found: Exported & { readonly values: readonly string[] },
  names: EnumNames,
): boolean {
  const access = reference.node.getParent();
  const index = Node.isElementAccessExpression(access) ? access.getArgumentExpression() : undefined;
  if (Node.isStringLiteral(index)) {
    const value = known(file, reference, found.values, index.getLiteralText());
    if (value === undefined) return true;
    file.convert(reference, names.values());
    if (value !== index.getLiteralText()) file.replaceNode(index, `'${value}'`);
    return true;
  }
  file.convert(reference, names.table());
  const [first = ''] = found.values;
  const short = shortened(found.values);
  if (short !== undefined && /_pb(\.[jt]s)?$/.test(reference.module))
    file.leave(
      reference.node,
      `${found.name}Names has the names of the .proto file, such as ${first} instead of ${short}`,
      generatorPage,
    );
  return true;
}

/**
 * Removes the prefix that all values share from the first value, and returns the rest. Returns undefined when
 * the values share no prefix.
 */
function shortened(values: readonly string[]): string | undefined {
  const [first = ''] = values;
  for (let at = first.lastIndexOf('_'); at > 0; at = first.lastIndexOf('_', at - 1))
    if (values.every((each) => each.startsWith(first.slice(0, at + 1)))) return first.slice(at + 1);
  return undefined;
}
