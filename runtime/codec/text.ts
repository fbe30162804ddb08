/**
 * Strings to UTF-8 and back. Short ASCII strings are moved in JavaScript, where a native call would cost more than the bytes;
 * everything else goes through Node's own transcoder. Called by the string reader and writer.
 */
import { isUtf8 } from 'node:buffer';
import type { Source } from './source.ts';

/** Methods of Buffer that work on any Uint8Array; Node has them, @types/node does not list them. */
interface Transcoder {
  utf8Slice(this: Uint8Array, start: number, end: number): string;
  utf8Write(this: Uint8Array, text: string, at: number, bytesMax: number): number;
}
const { utf8Slice, utf8Write } = Buffer.prototype as unknown as Transcoder;

/** Up to here a loop beats one native call. Both measured on Node 20. */
const loopCharsMax = 40;
const loopBytesMax = 16;

const char = String.fromCharCode;

/** Writes `text` at `at` if it is short and ASCII and returns the end, else -1 (bytes behind `at` are then arbitrary). */
export function writeShortAscii(bytes: Uint8Array, at: number, text: string): number {
  const length = text.length;
  if (length > loopCharsMax) return -1;
  let i = 0;
  for (; i + 4 <= length; i += 4) {
    const a = text.charCodeAt(i);
    const b = text.charCodeAt(i + 1);
    const c = text.charCodeAt(i + 2);
    const d = text.charCodeAt(i + 3);
    if ((a | b | c | d) > 127) return -1;
    bytes[at + i] = a;
    bytes[at + i + 1] = b;
    bytes[at + i + 2] = c;
    bytes[at + i + 3] = d;
  }
  for (; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code > 127) return -1;
    bytes[at + i] = code;
  }
  return at + length;
}

/** Writes any string, lone surrogates as U+FFFD, and returns the end. There is room for 3 bytes per UTF-16 unit. */
export function writeUtf8(bytes: Uint8Array, at: number, text: string): number {
  return at + utf8Write.call(bytes, text, at, text.length * 3);
}

/** The string in [at, end), which lies in the memory. Refuses invalid UTF-8. */
export function readUtf8(source: Source, at: number, end: number): string {
  const bytes = source.bytes;
  if (end - at <= loopBytesMax) {
    const text = readShortAscii(bytes, at, end);
    if (text !== undefined) return text;
  }
  const text = utf8Slice.call(bytes, at, end);
  // The transcoder replaces what is invalid; a string with a replacement character deserves a second look.
  if (text.includes('\ufffd') && !isUtf8(bytes.subarray(at, end)))
    source.fail(at, 'invalid UTF-8 in a string');
  return text;
}

/** Undefined when there is a byte that is not ASCII. Few calls with many characters each: every one makes a string. */
function readShortAscii(bytes: Uint8Array, at: number, end: number): string | undefined {
  let text = '';
  if (end - at >= 8) {
    const a = bytes[at] as number;
    const b = bytes[at + 1] as number;
    const c = bytes[at + 2] as number;
    const d = bytes[at + 3] as number;
    const e = bytes[at + 4] as number;
    const f = bytes[at + 5] as number;
    const g = bytes[at + 6] as number;
    const h = bytes[at + 7] as number;
    if ((a | b | c | d | e | f | g | h) > 127) return undefined;
    text = char(a, b, c, d, e, f, g, h);
    at += 8;
  }
  while (end - at >= 4) {
    const a = bytes[at] as number;
    const b = bytes[at + 1] as number;
    const c = bytes[at + 2] as number;
    const d = bytes[at + 3] as number;
    if ((a | b | c | d) > 127) return undefined;
    text += char(a, b, c, d);
    at += 4;
  }
  const rest = end - at;
  if (rest === 0) return text;
  const a = bytes[at] as number;
  if (rest === 1) return a > 127 ? undefined : text + char(a);
  const b = bytes[at + 1] as number;
  if (rest === 2) return (a | b) > 127 ? undefined : text + char(a, b);
  const c = bytes[at + 2] as number;
  return (a | b | c) > 127 ? undefined : text + char(a, b, c);
}
