/** Options of the JSON mapping. */
import type { Registry } from '../wkt/any.ts';

export interface JsonWriteOptions {
  /**
   * Writes fields without presence even when they have their default value, and also empty lists and empty
   * maps. Default false.
   */
  readonly alwaysEmitImplicit?: boolean;
  /** Uses the names of the .proto instead of lowerCamelCase names. Default false. */
  readonly useProtoFieldName?: boolean;
  /** Writes enum values as numbers instead of names. Default false. */
  readonly enumAsNumber?: boolean;
  /**
   * The types that an Any may contain, and the extensions to write. Without a registry, a non-empty Any is an
   * error, and extensions are omitted.
   */
  readonly registry?: Registry;
}

export interface JsonReadOptions {
  /**
   * Ignores fields and names of enum values that the message does not know. Default false, which makes them
   * errors.
   */
  readonly ignoreUnknownFields?: boolean;
  /**
   * The types that an Any may contain, and the extensions that may occur. Without a registry, a non-empty Any
   * and any extension are errors.
   */
  readonly registry?: Registry;
}
