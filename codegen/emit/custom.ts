/** Custom options as source text: inside definitions, and of messages as a const of their own, which bundlers drop when nobody looks. */
import type { Message, Plain } from '../model/model.ts';
import { quote } from './scalar.ts';

const isList = (value: Plain): value is readonly Plain[] => Array.isArray(value);

/** A literal. */
export function plainText(value: Plain): string {
  if (typeof value === 'string') return quote(value);
  if (typeof value !== 'object' || value === null) return String(value);
  if (isList(value)) return `[${value.map(plainText).join(', ')}]`;
  // `__proto__: …` in a literal would not be a property.
  const entries = Object.entries(value).map(
    ([key, each]) => `${key === '__proto__' ? "['__proto__']" : quote(key)}: ${plainText(each)}`,
  );
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
}

export function emitCustom(message: Message): string[] {
  if (message.options === '') return [];
  const fields = message.fields.flatMap(({ key, custom }) =>
    custom === undefined ? [] : `    ${key}: ${plainText(custom)},\n`,
  );
  const own = message.custom === undefined ? '{}' : plainText(message.custom);
  return [
    `/** Custom options of ${message.identifier} and its fields, by full name. */
export const ${message.options} = {
  custom: ${own},
  fields: {
${fields.join('')}  },
} as const;`,
  ];
}

/** Explicit defaults of fields with presence: what an absent field stands for. */
export function emitDefaults(message: Message): string[] {
  if (message.defaults === '') return [];
  const fields = message.fields.flatMap(({ key, default: value }) =>
    value === undefined
      ? []
      : `  ${key}: ${value.startsWith('Uint8Array') ? '/* @__PURE__ */ ' : ''}${value},\n`,
  );
  return [
    `/** What absent fields of ${message.identifier} stand for, where the .proto says so. */\nexport const ${message.defaults} = {\n${fields.join('')}} as const;`,
  ];
}
