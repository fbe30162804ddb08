/** What toText and fromText may be given. */
import type { Registry } from '../wkt/any.ts';

export interface TextWriteOptions {
  /**
   * What an Any may hold, which is then written out, and which extensions have names. Without it, an Any is
   * its two fields, and extensions are unknown fields.
   */
  readonly registry?: Registry;
  /**
   * Fields that the message has kept without knowing them are written too, by number. They cannot be read
   * back. Default false.
   */
  readonly unknownFields?: boolean;
  /** Everything on one line. Default false: a line for each field, nested ones two spaces further in. */
  readonly oneLine?: boolean;
}

export interface TextReadOptions {
  /**
   * What an Any that is written out may hold, and which extensions may be there. Without it they are errors.
   */
  readonly registry?: Registry;
}
