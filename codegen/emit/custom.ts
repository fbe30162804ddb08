/**
 * Emits custom options and explicit defaults as source text. They are written inside definitions. For
 * messages they are separate consts, which bundlers drop when they are unused.
 */
import type { Message, Plain } from '../model/model.ts';
import { numberText } from '../model/quoted.ts';
import { quote } from './scalar.ts';
import type { FileScope } from './scope.ts';
import { exportedConst, type Statement } from './statement.ts';

const isList = (value: Plain): value is readonly Plain[] => Array.isArray(value);

/** Returns the source text of a literal. */
export function plainText(value: Plain): string {
  if (typeof value === 'string') return quote(value);
  if (typeof value === 'number') return numberText(value);
  if (typeof value !== 'object' || value === null) return String(value);
  if (isList(value)) return `[${value.map(plainText).join(', ')}]`;
  // `__proto__: …` in a literal would not be a property.
  const entries = Object.entries(value).map(
    ([key, each]) => `${key === '__proto__' ? "['__proto__']" : quote(key)}: ${plainText(each)}`,
  );
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
}

/** Returns the type of the literal that plainText(value) writes, as `as const` gives it. */
export function plainType(value: Plain): string {
  if (typeof value !== 'object' || value === null) return plainText(value);
  if (isList(value)) return `readonly [${value.map(plainType).join(', ')}]`;
  const entries = Object.entries(value).map(([key, each]) => `readonly ${quote(key)}: ${plainType(each)}`);
  return entries.length === 0 ? '{}' : `{ ${entries.join('; ')} }`;
}

export function emitCustom(message: Message, scope: FileScope): Statement[] {
  if (message.options === '') return [];
  const own = message.custom ?? {};
  const fields = (line: (key: string, custom: Plain) => string) =>
    message.fields
      .flatMap(({ key, custom }) => (custom === undefined ? [] : `    ${line(key, custom)}\n`))
      .join('');
  return [
    exportedConst(
      {
        doc: `/** Custom options of ${message.identifier} and its fields, by full name. */\n`,
        name: message.options,
        type: `{\n  readonly custom: ${plainType(own)};\n  readonly fields: {\n${fields((key, custom) => `readonly ${key}: ${plainType(custom)};`)}  };\n}`,
        value: `{\n  custom: ${plainText(own)},\n  fields: {\n${fields((key, custom) => `${key}: ${plainText(custom)},`)}  },\n}`,
        literal: true,
      },
      scope,
    ),
  ];
}

const isBytes = (value: string) => value.startsWith('Uint8Array');

function defaultType(value: string): string {
  // Infinity and NaN have no literal.
  return isBytes(value) ? 'Uint8Array' : value.startsWith('Number.') ? 'number' : value;
}

/** Emits the explicit defaults of fields with presence, which are the values of absent fields. */
export function emitDefaults(message: Message, scope: FileScope): Statement[] {
  if (message.defaults === '') return [];
  const fields = (line: (key: string, value: string) => string) =>
    message.fields
      .flatMap(({ key, default: value }) => (value === undefined ? [] : `  ${line(key, value)}\n`))
      .join('');
  return [
    exportedConst(
      {
        doc: `/** The values of absent fields of ${message.identifier} for which the .proto sets a default. */\n`,
        name: message.defaults,
        type: `{\n${fields((key, value) => `readonly ${key}: ${defaultType(value)};`)}}`,
        value: `{\n${fields((key, value) => `${key}: ${isBytes(value) ? '/* @__PURE__ */ ' : ''}${value},`)}}`,
      },
      scope,
    ),
  ];
}
