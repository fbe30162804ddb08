/**
 * The state that all parts share which build the model: the schema, the types by full name, and error
 * reports. build.ts and the functions that it calls use it.
 */
import { type DeclaredKind, placeOf, type Schema, type SchemaFile } from '../link/schema.ts';
import { decodeOptions, type OptionTree } from '../options/tree.ts';
import { commentOf } from './comment.ts';
import type { Documented, Enum, File, Int64, Message } from './model.ts';

/** The field number of `deprecated` in the options of each kind of element. */
const deprecatedField: Readonly<Record<string, number>> = {
  MessageOptions: 3,
  FieldOptions: 3,
  EnumOptions: 3,
  EnumValueOptions: 1,
  ServiceOptions: 33,
  MethodOptions: 33,
};

export class Building {
  readonly schema: Schema;
  /** The type of 64-bit fields without `jstype`. */
  readonly int64: Int64;
  /** Messages and enums by full name. */
  readonly types = new Map<string, Message | Enum>();
  readonly files = new Map<SchemaFile, File>();

  constructor(schema: Schema, int64: Int64) {
    this.schema = schema;
    this.int64 = int64;
  }

  options(type: string, bytes: Uint8Array | undefined): OptionTree | undefined {
    return decodeOptions(this.schema, type, bytes);
  }

  documented(file: SchemaFile, path: string, type: string, options: OptionTree | undefined): Documented {
    const number = deprecatedField[type];
    return {
      comment: commentOf(file, path),
      deprecated: number !== undefined && options?.flag(number) === true,
    };
  }

  /**
   * Reports an error at a part of an element. `part` is the number of the wrong part's field in the element's
   * descriptor; 1 is the name.
   */
  report(file: SchemaFile, path: string, part: number, message: string): void {
    file.reporter.report(placeOf(file, path, part), message);
  }

  /**
   * Looks up a name as in a linked descriptor, with a leading dot. It records the use of the name's file,
   * because some files are emitted only when they are used.
   */
  type(from: SchemaFile, name: string | undefined): Message | Enum | undefined {
    const type = this.types.get((name ?? '').slice(1));
    if (type !== undefined && type.file.path !== from.path) this.files.get(from)?.uses.add(type.file);
    return type;
  }

  message(from: SchemaFile, name: string | undefined): Message | undefined {
    const type = this.type(from, name);
    return type?.kind === 'message' ? type : undefined;
  }

  declared(name: string | undefined): DeclaredKind<'message'> | undefined {
    return this.schema.messageOf(name ?? '');
  }
}
