/**
 * Reads and writes escapes in quoted text and bytes. print.ts and parse.ts call it. The generator also calls
 * it for the literals of .proto files, which have the same escapes.
 */

const named: Readonly<Record<number, string>> = {
  10: '\\n',
  13: '\\r',
  9: '\\t',
  34: '\\"',
  39: "\\'",
  92: '\\\\',
};

const octal = (byte: number): string => `\\${byte.toString(8).padStart(3, '0')}`;

/** Escapes bytes. protoc writes `bytes` in a descriptor's `default_value` in the same form. */
export function escapeBytes(bytes: Uint8Array): string {
  let result = '';
  for (const byte of bytes)
    result += named[byte] ?? (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : octal(byte));
  return result;
}

export function quoteBytes(bytes: Uint8Array): string {
  return `"${escapeBytes(bytes)}"`;
}

/** Escapes only control characters, quotes and backslashes, so that text stays readable. */
export function quoteText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what has to be written as escapes
  const special = /[\x00-\x1f"'\\\x7f]/g;
  return `"${text.replace(special, (char) => named[char.charCodeAt(0)] ?? octal(char.charCodeAt(0)))}"`;
}

const simple: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  f: 12,
  n: 10,
  r: 13,
  t: 9,
  v: 11,
  '\\': 92,
  "'": 39,
  '"': 34,
  '?': 63,
};

/**
 * Returns the bytes between the quotes, or an error text. `halves` says how to treat halves of surrogate
 * pairs. Text format refuses them, even when the other half follows, because it has \\U for such characters.
 * In a .proto file such halves become U+FFFD.
 */
export function bytesOfQuoted(text: string, halves: 'refused' | 'replaced'): Uint8Array | string {
  if (!text.includes('\\')) return new TextEncoder().encode(text);
  // An escape never stands for more bytes than it has characters.
  const result = Buffer.allocUnsafe(Buffer.byteLength(text));
  const escapes = /\\(?:([0-7]{1,3})|[xX]([\da-fA-F]{1,2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|(.))/gsu;
  let from = 0;
  let at = 0;
  for (const match of text.matchAll(escapes)) {
    if (from < match.index) at += result.write(text.slice(from, match.index), at);
    const [whole, octalDigits, hex, short, long, letter = ''] = match;
    from = match.index + whole.length;
    if (octalDigits !== undefined || hex !== undefined) {
      const byte =
        octalDigits === undefined ? Number.parseInt(hex ?? '', 16) : Number.parseInt(octalDigits, 8);
      if (byte > 255) return `${whole} is more than a byte`;
      result[at++] = byte;
      continue;
    }
    const point = short ?? long;
    if (point === undefined) {
      const byte = simple[letter];
      if (byte === undefined) return `${whole} is not an escape`;
      result[at++] = byte;
      continue;
    }
    const code = Number.parseInt(point, 16);
    if (halves === 'refused' && code >= 0xd800 && code < 0xe000) return `${whole} is half of a character`;
    if (code > 0x10ffff) return `${whole} is not a character`;
    at += result.write(String.fromCodePoint(code), at);
  }
  at += result.write(text.slice(from), at);
  return new Uint8Array(result.subarray(0, at));
}
