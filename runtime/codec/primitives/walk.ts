/**
 * The way of generated decoders through a message: into it, from tag to tag, out of it. The position is
 * `source.at`, where whatever reads a field leaves it. (readMessage, readTag, skipField and readEnd are the
 * same by arguments, for entries of maps.) Called by generated code only, on the thread of the call.
 */

import type { Source } from '../memory/source.ts';
import { readEnd, readMessage, readTag, skipField } from './read.ts';

/**
 * Of this module and not of another: V8 asks every time whether an import has its value yet, and whether it
 * is the function that it was.
 */
const enter = readMessage;
const wideTag = readTag;
const leave = readEnd;

export function enterMessage(source: Source, at: number, depth: number, typeName: string): void {
  enter(source, at, depth, typeName);
  source.at = at;
}

/** Puts the next field's number and wire type into `source.tag` and returns where its value begins. */
export function nextTag(source: Source, end: number): number {
  const { at } = source;
  const byte = source.bytes[at] as number;
  if (byte < 128) {
    source.tag = byte;
    return at + 1;
  }
  // With its sign: V8 keeps no other number of 32 bits in a property without memory of its own.
  source.tag = wideTag(source, at, end) | 0;
  return source.at;
}

/** Passes over the field of `source.tag`, which nobody knows. */
export function skipUnknown(source: Source, at: number, end: number, depth: number): void {
  skipField(source, source.tag >>> 0, at, end, depth);
}

/** What has been read must end where the message does. */
export function leaveMessage(source: Source, end: number): void {
  leave(source, source.at, end);
}
