/**
 * The model between parser and output: what a set of .proto files means, all names resolved and chosen,
 * nothing of descriptors left. Built by build.ts, read by everything in emit/.
 */

import type { Scalar } from '../../runtime/codec/types.ts';

export type { Scalar };

/** A class of typed arrays, without `Array`. */
export type ArrayName =
  | 'Int8'
  | 'Int16'
  | 'Uint16'
  | 'Int32'
  | 'Uint32'
  | 'BigInt64'
  | 'BigUint64'
  | 'Float32'
  | 'Float64';

export interface File {
  /** Import path: `kv/v1/kv.proto`. */
  readonly path: string;
  readonly package: string;
  /** Part of the runtime package; nothing is emitted for it. */
  readonly bundled: boolean;
  /** Other files whose types it refers to, or hands on. */
  readonly uses: Set<File>;
  /** In the order of the import statements. */
  readonly dependencies: readonly File[];
  readonly publicImports: readonly File[];
  /** The const with the file's descriptor. */
  readonly descriptor: string;
  /** Its encoding. */
  readonly bytes: Uint8Array;
  /** Nested ones behind the one that they are in. */
  readonly messages: Message[];
  readonly enums: Enum[];
  readonly services: Service[];
  readonly extensions: Extension[];
}

/** Documentation of anything. */
export interface Documented {
  readonly comment: string;
  readonly deprecated: boolean;
}

export interface Message extends Documented {
  readonly kind: 'message';
  readonly file: File;
  /** `kv.v1.Order.Item` */
  readonly fullName: string;
  /** Names in TypeScript. */
  readonly identifier: string;
  readonly init: string;
  /** By field number. */
  readonly fields: Field[];
  readonly oneofs: Oneof[];
  /** Fields that this version does not know are kept: on request, and where there are extension ranges. */
  readonly keepsUnknown: boolean;
  /** Names that no field may have. */
  readonly reserved: readonly string[];
  readonly custom: Plain | undefined;
  /** The const with custom options of it and its fields; empty when there are none. */
  options: string;
  /** The const with explicit defaults; empty when there are none. */
  defaults: string;
}

export interface Enum extends Documented {
  readonly kind: 'enum';
  readonly file: File;
  readonly fullName: string;
  readonly identifier: string;
  /** The const with the names by number. */
  readonly names: string;
  /** Other numbers are no values of it, for text format. */
  readonly closed: boolean;
  readonly values: readonly (Documented & { readonly name: string; readonly number: number })[];
}

/** How a 64-bit integer is held in TypeScript. */
export type Int64 = 'bigint' | 'string' | 'number';

export type FieldType =
  | { readonly kind: 'scalar'; readonly scalar: Scalar; readonly jstype: Int64 }
  | Message
  | Enum;

export interface Field extends Documented {
  /** As in the .proto. */
  readonly name: string;
  /** Property in TypeScript. */
  readonly key: string;
  /** In JSON. */
  readonly jsonName: string;
  readonly fullName: string;
  readonly number: number;
  readonly type: FieldType;
  /**
   * implicit: absent means the default, which is not sent. optional: absent and default differ (all singular
   * messages are). required: absent is an error.
   */
  readonly presence: 'implicit' | 'optional' | 'required' | 'repeated' | 'map' | 'oneof';
  /** Of a repeated field of numbers: how it is written. Both forms are read. */
  readonly packed: boolean;
  /** A message that is written as a group. */
  readonly delimited: boolean;
  /** A string that has to be valid UTF-8. */
  readonly utf8: boolean;
  /** Source text of an explicit default. */
  readonly default: string | undefined;
  /**
   * Of a `bytes` field: the typed array that its property is (`Float32` for a Float32Array); undefined: a
   * Uint8Array.
   */
  readonly array: ArrayName | undefined;
  /** Bytes from which on a value is transferred from where it is, if the .proto says so. */
  readonly bulkThreshold: number | undefined;
  readonly custom: Plain | undefined;
  readonly mapKey: Scalar | undefined;
  readonly oneof: Oneof | undefined;
}

export interface Oneof extends Documented {
  /** Property in TypeScript, chosen with those of the message's fields. */
  key: string;
  readonly fullName: string;
  /** By field number. */
  readonly fields: Field[];
}

export interface Service extends Documented {
  readonly name: string;
  readonly fullName: string;
  /** Names in TypeScript. */
  readonly definition: string;
  readonly client: string;
  readonly handlers: string;
  readonly methods: readonly Method[];
  readonly custom: Plain | undefined;
}

export interface Method extends Documented {
  readonly name: string;
  /** Property in TypeScript. */
  readonly key: string;
  /** `kv.v1.Kv/Get` */
  readonly path: string;
  readonly id: number;
  /** Its id in `options.preferredCodec`. */
  readonly preferredId: number | undefined;
  readonly request: Message;
  readonly response: Message;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  readonly options: MethodOptions;
}

export interface MethodOptions {
  readonly idempotencyLevel: 'IDEMPOTENT' | 'NO_SIDE_EFFECTS' | undefined;
  readonly oneWay: boolean;
  readonly expectedResponseBytes: number | undefined;
  readonly preferredCodec: 'MSGPACK' | undefined;
  readonly custom: Plain | undefined;
}

/** A field of another message, declared outside of it. */
export interface Extension extends Documented {
  readonly identifier: string;
  readonly fullName: string;
  readonly extendee: Message;
  /** Its one field, with the key `value`, is the extension. */
  readonly message: Message;
}

/** Custom options, in the form of protobuf's JSON. */
export type Plain = string | number | boolean | null | readonly Plain[] | { readonly [key: string]: Plain };
