/**
 * Primitives for what only proto2 and editions have: groups, required fields, strings that nobody promised to
 * be UTF-8. Called by generated code for such fields only.
 */
import { CodecError } from '../error.ts';
import type { Source } from '../memory/source.ts';
import { readLength, readTag, skipField } from './read.ts';

/** Encoding: a required field is not there. */
export function missing(field: string): never {
  throw new CodecError(field, 'is required and was not given');
}

/** Decoding: the message has ended without it. */
export function missingField(source: Source, end: number, field: string): never {
  return source.fail(end, `the required field ${field} is missing`);
}

/** A group whose start tag has been read: where its content ends. `source.at` is left behind its end tag. */
export function readGroup(source: Source, number: number, at: number, end: number, depth: number): number {
  const content = at;
  while (at < end) {
    const start = at;
    const tag = readTag(source, at, end);
    at = source.at;
    if ((tag & 7) === 4) {
      if (tag >>> 3 !== number)
        source.fail(start, `the group of field ${number} is closed by field ${tag >>> 3}`);
      source.back(content);
      return start;
    }
    at = skipField(source, tag, at, end, depth);
  }
  return source.fail(end, `truncated: the group of field ${number} has no end`);
}

/** A string in which invalid UTF-8 becomes U+FFFD. */
export function readLooseString(source: Source, at: number, end: number): string {
  const stop = readLength(source, at, end);
  const { bytes, at: start } = source;
  source.at = stop;
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, stop - start).toString('utf8');
}
