/**
 * Primitives for features of proto2 and editions: groups, required fields, strings that need not be UTF-8.
 * Only generated code for such fields calls them.
 */
import { CodecError } from '../error.ts';
import type { Source } from '../memory/source.ts';
import { readLength, readTag, skipField } from './read.ts';

/** Throws when encoding finds that a required field is absent. */
export function missing(field: string): never {
  throw new CodecError(field, 'is required and was not given');
}

/** Throws when a decoded message has ended without a required field. */
export function missingField(source: Source, end: number, field: string): never {
  return source.fail(end, `the required field ${field} is missing`);
}

/**
 * Returns the end of a group's content, after its start tag has been read. Leaves `source.at` behind the
 * group's end tag.
 */
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

/** Reads a string; invalid UTF-8 becomes U+FFFD. */
export function readLooseString(source: Source, at: number, end: number): string {
  const stop = readLength(source, at, end);
  const { bytes, at: start } = source;
  source.at = stop;
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, stop - start).toString('utf8');
}
