/**
 * Messages in JSON.stringify, which refuses bigints and makes an object of numbered properties out of bytes.
 * Called by JSON.stringify, for applications.
 */

/**
 * `JSON.stringify(anything, jsonReplacer)`: 64-bit numbers become strings and `bytes` base64, as `toJson` has
 * them. Meant for logs: it knows no types, so enums stay numbers, maps and oneofs as they are, a Timestamp
 * its seconds and nanos. `toJson` gives what other programs of protobuf read.
 */
export function jsonReplacer(this: unknown, key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  // A Buffer has turned itself into a list by then.
  const given = (this as { readonly [key: string]: unknown } | undefined)?.[key];
  if (given instanceof Uint8Array)
    return Buffer.from(given.buffer, given.byteOffset, given.byteLength).toString('base64');
  return value;
}
