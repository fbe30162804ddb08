/** Enums as const objects: nothing for a type stripper to transform, and numbers that the .proto does not know yet stay what they are. */
import type { Enum } from '../model/model.ts';
import { docLines } from './comment.ts';
import { quote } from './scalar.ts';

/** `__proto__: 0` in a literal would not be a property. */
const property = (name: string): string => (name === '__proto__' ? "['__proto__']" : name);

export function emitEnum(type: Enum): string[] {
  const values = type.values.map(
    (value) => `${docLines(value, '  ')}  ${property(value.name)}: ${value.number},\n`,
  );
  const names = new Map<number, string>();
  for (const value of type.values) if (!names.has(value.number)) names.set(value.number, value.name);
  const entries = [...names].map(
    ([number, name]) => `  ${number < 0 ? `[${number}]` : number}: ${quote(name)},\n`,
  );
  const id = type.identifier;
  return [
    `${docLines(type, '')}export const ${id} = {\n${values.join('')}} as const;`,
    `/** One of the values of ${id}, or a number that a newer peer knows. */\nexport type ${id} = (typeof ${id})[keyof typeof ${id}] | (number & {});`,
    `/** Names of ${id} by number; the first one where there are aliases. */\nexport const ${type.names}: { readonly [value: number]: string | undefined } = {\n${entries.join('')}};`,
  ];
}
