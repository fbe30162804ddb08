/**
 * The declarations of a server, from reflection or from files. The commands that list, describe and call use
 * them.
 */
import type { FileRegistry } from '#protobuf';

export interface Schema {
  /** The subject of an error text, such as `the server declares no X`. */
  readonly owner: string;
  /** Resolves with the full names of the services, sorted. */
  services(): Promise<string[]>;
  /**
   * Returns the files that declare `symbol` and all files that these need, or undefined when the name does
   * not exist. With `extensions`, the files also include those that declare extensions of the files'
   * messages, because imports do not lead to them.
   */
  declaring(symbol: string, extensions?: 'extensions'): Promise<FileRegistry | undefined>;
}

export interface SchemaFlags {
  readonly proto: readonly string[];
  readonly include: readonly string[];
  readonly protoset: readonly string[];
}

export const fromFiles = ({ proto, protoset }: SchemaFlags): boolean => proto.length + protoset.length > 0;
