/**
 * What the parser makes of one file, before names are resolved: the descriptor, the options as written, and
 * where everything is.
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
  /** In brackets: an extension, or with a `/` the type inside an Any. */
  readonly bracketed: boolean;
  readonly value: OptionValue;
}

/** `(a.b).c = value`: three parts' worth of path and what it is set to. */
export interface OptionStatement {
  readonly parts: readonly { readonly token: Token; readonly name: string; readonly extension: boolean }[];
  readonly value: OptionValue;
}

/** Everything written about one element, to be made into the bytes of its `options`. */
export interface PendingOptions {
  /** `FieldOptions` and the like. */
  readonly type: string;
  readonly holder: { options?: Uint8Array | undefined };
  /** Where names begin to be looked up: full name of the element's parent. */
  readonly scope: string;
  readonly statements: OptionStatement[];
}

/**
 * Place and comments of an element, by its path in the descriptor: field numbers and indices, as in
 * SourceCodeInfo.
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
  /** Defaults as written; what they are depends on the field's type. */
  readonly defaults: ReadonlyMap<FieldDescriptorProto, OptionValue>;
  readonly imports: readonly {
    readonly path: string;
    readonly token: Token;
    readonly kind: 'plain' | 'public' | 'weak' | 'option';
  }[];
  /** A descriptor with holes: its errors have been reported, and it is not to be linked. */
  readonly broken: boolean;
}
