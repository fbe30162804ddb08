/**
 * What a server declares, wherever that is known from: its reflection, or files. For the commands that list,
 * describe and call.
 */
import type { FileRegistry } from '#protobuf';

export interface Schema {
  /** Who declares, as it stands in an error: `the server declares no X`. */
  readonly owner: string;
  /** Full names of the services, sorted. */
  services(): Promise<string[]>;
  /**
   * The files that declare `symbol` and all that those need. Undefined: nothing has that name. `extensions`:
   * with those of the messages in the files, which no import leads to.
   */
  declaring(symbol: string, extensions?: 'extensions'): Promise<FileRegistry | undefined>;
}

export interface SchemaFlags {
  readonly proto: readonly string[];
  readonly include: readonly string[];
  readonly protoset: readonly string[];
}

export const fromFiles = ({ proto, protoset }: SchemaFlags): boolean => proto.length + protoset.length > 0;
