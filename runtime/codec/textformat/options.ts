/** Options of toText and fromText. */
import type { Registry } from '../wkt/any.ts';

export interface TextWriteOptions {
  /**
   * The types that an Any may contain, which is then expanded, and the extensions that are written by name.
   * Without it, an Any is written as its two fields, and extensions as unknown fields.
   */
  readonly registry?: Registry;
  /**
   * Also writes the unknown fields that a message has kept, by number. They cannot be read back. Default
   * false.
   */
  readonly unknownFields?: boolean;
  /**
   * Writes everything on one line. Default false: a line for each field, nested ones indented by two spaces.
   */
  readonly oneLine?: boolean;
}

export interface TextReadOptions {
  /**
   * The types that an expanded Any may contain, and the extensions that may occur. Without it they are
   * errors.
   */
  readonly registry?: Registry;
}
