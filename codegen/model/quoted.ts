/**
 * Returns the text of literals, for all generated code.
 */

const escapes: Readonly<Record<string, string>> = {
  '\n': '\\n',
  '\r': '\\r',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
};

/** Returns the text of a finite number. `String` would lose the sign of -0. */
export function numberText(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

export function quoted(text: string): string {
  const inside = text
    .replace(/[\\']/g, '\\$&')
    .replace(/[\n\r\u2028\u2029]/g, (char) => escapes[char] ?? char);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what has to be written as escapes
  return `'${inside.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`)}'`;
}
