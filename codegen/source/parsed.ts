/**
 * The parser's result for one file before names are resolved: the descriptor, the options as written, and the
 * positions of all elements.
 */

import type { FieldDescriptorProto, FileDescriptorProto } from '../descriptor/descriptor.rdma.ts';
import type { Place } from '../diagnostic.ts';
import type { Token } from './lexer.ts';

/** A value of an option, as written. */
export type OptionValue =
  | { readonly kind: 'name' | 'int' | 'float'; readonly token: Token; readonly text: string }
  | { readonly kind: 'string'; readonly token: Token; readonly bytes: Buffer }
  | { readonly kind: 'list'; readonly token: Token; readonly items: readonly OptionValue[] }
  | { readonly kind: 'message'; readonly token: Token; readonly fields: readonly TextField[] };

/** `name: value` inside braces. */
export interface TextField {
  readonly token: Token;
  readonly name: string;
  /**
   * Whether the name is in brackets, because it is an extension, or the type inside an Any when the name has
   * a `/`.
   */
  readonly bracketed: boolean;
  readonly value: OptionValue;
}

/** A statement `(a.b).c = value`: the parts of the name, and the value. */
export interface OptionStatement {
  readonly parts: readonly { readonly token: Token; readonly name: string; readonly extension: boolean }[];
  readonly value: OptionValue;
}

/** All options that are written for one element. They will be encoded into its `options`. */
export interface PendingOptions {
  /** The name of the options message, such as `FieldOptions`. */
  readonly type: string;
  readonly holder: { options?: Uint8Array | undefined };
  /** Scope in which names are resolved, which is the full name of the element's parent. */
  readonly scope: string;
  readonly statements: OptionStatement[];
}

/**
 * Position and comments of an element, by the element's path in the descriptor: field numbers and indices, as
 * in SourceCodeInfo.
 */
export interface Location {
  readonly token: Place;
  readonly leading?: string | undefined;
  readonly trailing?: string | undefined;
}

export type Locations = ReadonlyMap<string, Location>;

export interface ParsedFile {
  readonly descriptor: FileDescriptorProto;
  readonly locations: Locations;
  readonly pending: readonly PendingOptions[];
  /** Defaults as written. Their meaning depends on the field's type. */
  readonly defaults: ReadonlyMap<FieldDescriptorProto, OptionValue>;
  readonly imports: readonly {
    readonly path: string;
    readonly token: Token;
    readonly kind: 'plain' | 'public' | 'weak' | 'option';
  }[];
  /** Whether the descriptor is incomplete. Its errors have then been reported, and it must not be linked. */
  readonly broken: boolean;
}
