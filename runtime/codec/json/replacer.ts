/**
 * A replacer for JSON.stringify, which by itself throws for bigints and writes bytes as an object of numbered
 * properties. JSON.stringify calls it, for applications.
 */

/**
 * `JSON.stringify(anything, jsonReplacer)` writes 64-bit numbers as strings and `bytes` as base64, as
 * `toJson` does. The replacer is meant for logs. It knows no types, so enums stay numbers, maps and oneofs
 * keep their form, and a Timestamp shows its seconds and nanos. Use `toJson` for JSON that other protobuf
 * programs read.
 */
export function jsonReplacer(this: unknown, key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  // JSON.stringify has already replaced a Buffer by the result of its toJSON(), so this function reads the
  // original.
  const given = (this as { readonly [key: string]: unknown } | undefined)?.[key];
  if (given instanceof Uint8Array)
    return Buffer.from(given.buffer, given.byteOffset, given.byteLength).toString('base64');
  return value;
}
