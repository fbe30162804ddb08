/**
 * The declarations of a server, from reflection or from files. For the commands that list, describe and call.
 */
import type { FileRegistry } from '#protobuf';

export interface Schema {
  /** The subject of an error text: `the server declares no X`. */
  readonly owner: string;
  /** Full names of the services, sorted. */
  services(): Promise<string[]>;
  /**
   * Returns the files that declare `symbol` with everything that they need, or undefined when the name does
   * not exist. `extensions` includes those of the files' messages, to which no import leads.
   */
  declaring(symbol: string, extensions?: 'extensions'): Promise<FileRegistry | undefined>;
}

export interface SchemaFlags {
  readonly proto: readonly string[];
  readonly include: readonly string[];
  readonly protoset: readonly string[];
}

export const fromFiles = ({ proto, protoset }: SchemaFlags): boolean => proto.length + protoset.length > 0;
