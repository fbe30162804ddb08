/** Options of toText and fromText. */
import type { Registry } from '../wkt/any.ts';

export interface TextWriteOptions {
  /**
   * The types that an Any may contain, and the extensions that are written by name. An Any of a known type is
   * expanded. Without a registry, an Any is written as its two fields, and extensions are written as unknown
   * fields.
   */
  readonly registry?: Registry;
  /**
   * Writes the unknown fields that a message has kept, by number. They cannot be parsed again. Default false.
   */
  readonly unknownFields?: boolean;
  /**
   * Writes everything on one line. Default false, which writes a line for each field and indents nested
   * fields by two spaces.
   */
  readonly oneLine?: boolean;
}

export interface TextReadOptions {
  /**
   * The types that an expanded Any may contain, and the extensions that may occur. Without a registry they
   * are errors.
   */
  readonly registry?: Registry;
}
