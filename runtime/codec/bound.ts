/**
 * Primitives of the generated `bound` functions: upper bounds of what the writers will need. Called by generated code only, for messages that are
 * too large for the memory that is at hand.
 */
import { checkBytes, checkList, checkString } from './check.ts';
import { holesMax, type Sink } from './sink.ts';

/** A length below 2^32 as a varint. */
export const lengthBytes = 5;

/** From here on measuring a string costs less than the memory that three bytes per character would waste. */
const measuredChars = 1024;

/** Most bytes of a string and its length. */
export function stringRoom(text: string): number {
  return lengthBytes + (text.length < measuredChars ? text.length * 3 : Buffer.byteLength(text));
}

export function boundString(text: string, field: string): number {
  checkString(text, field);
  return stringRoom(text);
}

export function boundBytes(value: Uint8Array, sink: Sink, field: string): number {
  checkBytes(value, field);
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
  checkList(list, field);
  return lengthBytes + list.length * size;
}
