/**
 * Moves generated decoders through a message: into it, from tag to tag, and out of it. The position is
 * `source.at`, where the reader of each field leaves it. (For map entries, readMessage, readTag, skipField
 * and readEnd do the same with arguments.) Only generated code calls it, on the thread of the call.
 */

import type { Source } from '../memory/source.ts';
import { readEnd, readMessage, readTag, skipField } from './read.ts';

/**
 * These are constants of this module, because V8 checks on each access whether an import is initialised and
 * whether it still is the same function.
 */
const enter = readMessage;
const wideTag = readTag;
const leave = readEnd;

export function enterMessage(source: Source, at: number, depth: number, typeName: string): void {
  enter(source, at, depth, typeName);
  source.at = at;
}

/**
 * Puts the next field's number and wire type into `source.tag`, and returns where the value of the field
 * begins.
 */
export function nextTag(source: Source, end: number): number {
  const { at } = source;
  const byte = source.bytes[at] as number;
  if (byte < 128) {
    source.tag = byte;
    return at + 1;
  }
  // The tag is signed, because V8 cannot store other 32-bit numbers in a property without allocating.
  source.tag = wideTag(source, at, end) | 0;
  return source.at;
}

/** Skips the unknown field whose tag is in `source.tag`. */
export function skipUnknown(source: Source, at: number, end: number, depth: number): void {
  skipField(source, source.tag >>> 0, at, end, depth);
}

/** Checks that the last value of a message ends exactly at the end of the message. */
export function leaveMessage(source: Source, end: number): void {
  leave(source, source.at, end);
}
