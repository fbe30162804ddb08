/** String literals of .proto files: what their escapes stand for. Bytes, since an escape can make any byte. */

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

/** The bytes of what is between the quotes, or what is wrong with it. */
export function stringBytes(text: string): Buffer | string {
  if (!text.includes('\\')) return Buffer.from(text, 'utf8');
  // No escape stands for more bytes than it has characters.
  const result = Buffer.allocUnsafe(Buffer.byteLength(text, 'utf8'));
  const escapes = /\\(?:([0-7]{1,3})|[xX]([\da-fA-F]{1,2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|(.))/gsu;
  let from = 0;
  let at = 0;
  for (const match of text.matchAll(escapes)) {
    if (from < match.index) at += result.write(text.slice(from, match.index), at, 'utf8');
    from = match.index + match[0].length;
    const [whole, octal, hex, short, long, letter] = match;
    const byte =
      octal !== undefined
        ? Number.parseInt(octal, 8)
        : hex !== undefined
          ? Number.parseInt(hex, 16)
          : undefined;
    const point = short ?? long;
    if (byte !== undefined) {
      if (byte > 255) return `${whole} is more than a byte`;
      result[at++] = byte;
    } else if (point !== undefined) {
      const code = Number.parseInt(point, 16);
      if (code > 0x10ffff) return `${whole} is no character`;
      at += result.write(String.fromCodePoint(code), at, 'utf8');
    } else {
      const plain = simple[letter ?? ''];
      if (plain === undefined) return `there is no escape ${whole}`;
      result[at++] = plain;
    }
  }
  at += result.write(text.slice(from), at, 'utf8');
  return result.subarray(0, at);
}

/** The escapes that protoc writes for `bytes` in a descriptor's `default_value`. */
export function escapeBytes(bytes: Uint8Array): string {
  const named: Readonly<Record<number, string>> = {
    10: '\\n',
    13: '\\r',
    9: '\\t',
    34: '\\"',
    39: "\\'",
    92: '\\\\',
  };
  let result = '';
  for (const byte of bytes) {
    result +=
      named[byte] ??
      (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, '0')}`);
  }
  return result;
}
