/** Options of the JSON mapping. */
import type { Registry } from '../wkt/any.ts';

export interface JsonWriteOptions {
  /**
   * Fields without presence that are at their default, empty lists and empty maps are written too. Default
   * false.
   */
  readonly alwaysEmitImplicit?: boolean;
  /** Names as in the .proto instead of lowerCamelCase ones. Default false. */
  readonly useProtoFieldName?: boolean;
  /** Enum values as numbers instead of names. Default false. */
  readonly enumAsNumber?: boolean;
  /**
   * What an Any may hold, and which extensions are written. Without it, an Any that holds something is an
   * error, and extensions are left out.
   */
  readonly registry?: Registry;
}

export interface JsonReadOptions {
  /**
   * Passes over fields, and names of enum values, that the message does not know. Default false: they are
   * errors.
   */
  readonly ignoreUnknownFields?: boolean;
  /**
   * What an Any may hold, and which extensions may be there. Without it, an Any that holds something and an
   * extension are errors.
   */
  readonly registry?: Registry;
}
