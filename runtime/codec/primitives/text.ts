/**
 * Converts strings to UTF-8 and back. Short ASCII strings are copied in JavaScript, where a native call would
 * cost more than copying the bytes. Node's own transcoder handles all other strings. The string reader and
 * writer call it.
 */
import { isUtf8 } from 'node:buffer';
import type { Source } from '../memory/source.ts';

/** Methods of Buffer that work on any Uint8Array. Node has them, but @types/node does not declare them. */
interface Transcoder {
  utf8Slice(this: Uint8Array, start: number, end: number): string;
  utf8Write(this: Uint8Array, text: string, at: number, bytesMax: number): number;
}
const { utf8Slice, utf8Write } = Buffer.prototype as unknown as Transcoder;

/**
 * Up to this number of characters a loop is faster than one native call, which costs as much as 30 to 40
 * characters (Node 20). At three bytes per character, the length of such a text still fits one byte.
 */
export const loopCharsMax = 36;
const loopBytesMax = 16;

const char = String.fromCharCode;

/**
 * Writes `text`, which has at most `loopCharsMax` characters, at `at` and returns the end. Lone surrogates
 * become U+FFFD.
 */
export function writeShort(bytes: Uint8Array, at: number, text: string): number {
  const length = text.length;
  let i = 0;
  // The loop handles two characters per iteration. If an iteration handled one character, most of the time
  // would be spent on the loop itself. If it handled four, the code that V8 inlines into all callers would be
  // too large.
  for (; i + 2 <= length; i += 2) {
    const a = text.charCodeAt(i);
    const b = text.charCodeAt(i + 1);
    if ((a | b) > 127) return writeShortUtf8(bytes, at + i, text, i);
    bytes[at + i] = a;
    bytes[at + i + 1] = b;
  }
  if (i !== length) {
    const last = text.charCodeAt(i);
    if (last > 127) return writeShortUtf8(bytes, at + i, text, i);
    bytes[at + i] = last;
  }
  return at + length;
}

/** Writes the rest of `text` from character `i` on. */
function writeShortUtf8(bytes: Uint8Array, at: number, text: string, i: number): number {
  const { length } = text;
  for (; i < length; i++) {
    let code = text.charCodeAt(i);
    if (code < 0x80) {
      bytes[at++] = code;
      // In most languages, more ASCII characters follow a character that is not ASCII.
      for (; i + 3 <= length; i += 2) {
        const a = text.charCodeAt(i + 1);
        const b = text.charCodeAt(i + 2);
        if ((a | b) > 127) break;
        bytes[at] = a;
        bytes[at + 1] = b;
        at += 2;
      }
      continue;
    }
    if (code < 0x800) {
      bytes[at++] = 0xc0 | (code >> 6);
      bytes[at++] = 0x80 | (code & 63);
      continue;
    }
    if ((code & 0xf800) === 0xd800) {
      // This is half of a surrogate pair, normally the high half, which the low half follows. Behind the end
      // of the text the code is NaN, which is not a low half.
      const low = text.charCodeAt(i + 1);
      if (code < 0xdc00 && (low & 0xfc00) === 0xdc00) {
        i++;
        code = 0x1_0000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
        bytes[at++] = 0xf0 | (code >> 18);
        bytes[at++] = 0x80 | ((code >> 12) & 63);
        bytes[at++] = 0x80 | ((code >> 6) & 63);
        bytes[at++] = 0x80 | (code & 63);
        continue;
      }
      code = 0xfffd;
    }
    bytes[at++] = 0xe0 | (code >> 12);
    bytes[at++] = 0x80 | ((code >> 6) & 63);
    bytes[at++] = 0x80 | (code & 63);
  }
  return at;
}

/**
 * Writes any string, with lone surrogates as U+FFFD, and returns the end. The caller has made sure that the
 * text fits (`stringRoom`). The length passed to Node is the available room (`bytes.length - at`). Since Node
 * 24, a larger length throws (Node 22 and earlier versions cut it off), and a measured text may have less
 * room than three bytes per character.
 */
export function writeUtf8(bytes: Uint8Array, at: number, text: string): number {
  return at + utf8Write.call(bytes, text, at, bytes.length - at);
}

/** Returns the string in [at, end), which lies in the memory. Throws for invalid UTF-8. */
export function readUtf8(source: Source, at: number, end: number): string {
  const bytes = source.bytes;
  if (end - at <= loopBytesMax) {
    const text = readShortAscii(bytes, at, end);
    if (text !== undefined) return text;
  }
  if (source.shared) return readCopied(source, at, end);
  const text = utf8Slice.call(bytes, at, end);
  // The transcoder replaces invalid bytes, so a string that contains a replacement character needs a check.
  if (text.includes('\ufffd') && !isUtf8(bytes.subarray(at, end)))
    source.fail(at, 'invalid UTF-8 in a string');
  return text;
}

/**
 * Returns the text in [at, end) of memory that no other thread or process changes. Invalid UTF-8 becomes
 * U+FFFD.
 */
export function readText(bytes: Uint8Array, at: number, end: number): string {
  const text = end - at <= loopBytesMax ? readShortAscii(bytes, at, end) : undefined;
  return text ?? utf8Slice.call(bytes, at, end);
}

/** Longer texts are copied to memory of their own. */
const copyBytesMax = 4096;
let copyRoom: Uint8Array | undefined;

/**
 * V8 measures a text before it creates the string. If a peer changed the text in between, V8 would write
 * beyond the string, so shared memory is copied first.
 */
function readCopied(source: Source, at: number, end: number): string {
  const length = end - at;
  let copy: Uint8Array;
  if (length <= copyBytesMax) {
    copyRoom ??= new Uint8Array(copyBytesMax);
    copy = copyRoom;
    copy.set(source.bytes.subarray(at, end));
  } else {
    copy = source.bytes.slice(at, end);
  }
  const text = utf8Slice.call(copy, 0, length);
  if (text.includes('\ufffd') && !isUtf8(copy.subarray(0, length)))
    source.fail(at, 'invalid UTF-8 in a string');
  return text;
}

/**
 * Returns the text of at most `loopBytesMax` bytes, or undefined when one of the bytes is not ASCII. Each
 * call of `char` creates a string, and joining two strings creates a third, so this function makes at most
 * two calls.
 */
function readShortAscii(bytes: Uint8Array, at: number, end: number): string | undefined {
  const length = end - at;
  if (length < 8) return length === 0 ? '' : readFew(bytes, at, length);
  const head = readEight(bytes, at);
  if (length === 8 || head === undefined) return head;
  const tail = length === 16 ? readEight(bytes, at + 8) : readFew(bytes, at + 8, length - 8);
  return tail === undefined ? undefined : head + tail;
}

function readEight(bytes: Uint8Array, at: number): string | undefined {
  const a = bytes[at] as number;
  const b = bytes[at + 1] as number;
  const c = bytes[at + 2] as number;
  const d = bytes[at + 3] as number;
  const e = bytes[at + 4] as number;
  const f = bytes[at + 5] as number;
  const g = bytes[at + 6] as number;
  const h = bytes[at + 7] as number;
  return (a | b | c | d | e | f | g | h) > 127 ? undefined : char(a, b, c, d, e, f, g, h);
}

/** Reads one to seven bytes. */
function readFew(bytes: Uint8Array, at: number, length: number): string | undefined {
  const a = bytes[at] as number;
  if (length === 1) return a > 127 ? undefined : char(a);
  const b = bytes[at + 1] as number;
  if (length === 2) return (a | b) > 127 ? undefined : char(a, b);
  const c = bytes[at + 2] as number;
  if (length === 3) return (a | b | c) > 127 ? undefined : char(a, b, c);
  const d = bytes[at + 3] as number;
  const four = a | b | c | d;
  if (length === 4) return four > 127 ? undefined : char(a, b, c, d);
  const e = bytes[at + 4] as number;
  if (length === 5) return (four | e) > 127 ? undefined : char(a, b, c, d, e);
  const f = bytes[at + 5] as number;
  if (length === 6) return (four | e | f) > 127 ? undefined : char(a, b, c, d, e, f);
  const g = bytes[at + 6] as number;
  return (four | e | f | g) > 127 ? undefined : char(a, b, c, d, e, f, g);
}
