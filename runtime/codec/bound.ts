/**
 * Primitives of the generated `bound` functions: upper bounds of what the writers will need, and the checks of kind for all values whose
 * size has to be looked at anyway (strings, `bytes`, lists, maps, messages). Called by generated code only, before it encodes.
 */
import { CodecError, mismatch } from './error.ts';
import { nestingMax } from './limits.ts';
import { holesMax, type Sink } from './sink.ts';

/** A length below 2^32 as a varint. */
const lengthBytes = 5;

/** From here on measuring a string costs less than the memory that three bytes per character would waste. */
const measuredChars = 1024;

/** Entering a message, which `name` (its type, or the field that it is in) is to have. */
export function boundMessage(message: object, depth: number, name: string): void {
  if (typeof message !== 'object' || message === null || Array.isArray(message))
    mismatch(name, message, 'an object');
  if (depth > nestingMax) {
    throw new CodecError(name, `messages are nested more than ${nestingMax} deep (a cycle?)`);
  }
}

export function boundString(text: string, field: string): number {
  if (typeof text !== 'string') mismatch(field, text, 'a string');
  return lengthBytes + (text.length < measuredChars ? text.length * 3 : Buffer.byteLength(text));
}

export function boundBytes(value: Uint8Array, sink: Sink, field: string): number {
  if (!ArrayBuffer.isView(value) || value.BYTES_PER_ELEMENT !== 1) mismatch(field, value, 'a Uint8Array');
  const length = value.length;
  if (length >= sink.gatherBytes && length !== 0 && sink.planned < holesMax) {
    sink.planned++;
    sink.gathered += length;
    return lengthBytes;
  }
  return lengthBytes + length;
}

/** A list of `value.length` elements of at most `size` bytes each. */
export function boundList(list: readonly unknown[], size: number, field: string): number {
  if (!Array.isArray(list)) mismatch(field, list, 'an array');
  return lengthBytes + list.length * size;
}

export function boundOneof(value: object, field: string): void {
  if (typeof value !== 'object' || value === null)
    mismatch(field, value, 'an object with `case` and `value`');
}

export function unknownCase(field: string, value: unknown): never {
  mismatch(field, value, 'the name of one of its fields as `case`');
}
