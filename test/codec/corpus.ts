/**
 * Contains the test corpus: every message of test/codec/protos as our generated type and as protobufjs's
 * reflection of the same file, and the conversions between the two. The codec tests share it.
 */
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { isMessageType, type MessageType } from 'rdma-rpc/codec';
import { propertyName } from '../../codegen/model/names.ts';
import * as conformance from './gen/conformance.rdma.ts';
import * as documented from './gen/documented.rdma.ts';
import * as everything from './gen/everything.rdma.ts';
import * as hostile from './gen/hostile.rdma.ts';
import * as facade from './gen/public/facade.rdma.ts';
import * as wellKnown from './gen/well_known.rdma.ts';

export const protoDirectory = join(dirname(fileURLToPath(import.meta.url)), 'protos');
export const projectDirectory = join(protoDirectory, '..', '..', '..');

export type AnyMessage = Record<string, unknown>;
export type AnyType = MessageType<AnyMessage, AnyMessage>;

export interface Pair {
  readonly name: string;
  readonly ours: AnyType;
  readonly theirs: protobuf.Type;
}

function loadTheirs(): protobuf.Root {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => {
    if (target.endsWith('/descriptor.proto'))
      return join(projectDirectory, 'node_modules/protobufjs', target);
    // The well-known types are protobufjs's own types, so that ours are checked against them.
    return target.startsWith('google/protobuf/') || isAbsolute(target)
      ? target
      : join(protoDirectory, target);
  };
  const files = ['conformance', 'documented', 'everything', 'hostile', 'well_known'].map((name) =>
    join(protoDirectory, `${name}.proto`),
  );
  root.loadSync(files, { keepCase: true }).resolveAll();
  return root;
}

const root = loadTheirs();

/** The generated modules. */
export const modules: readonly Record<string, unknown>[] = [
  conformance,
  documented,
  everything,
  facade,
  hostile,
  wellKnown,
];

/** All messages of the corpus. */
export const corpus: readonly Pair[] = modules
  .flatMap((module) => Object.values(module).filter(isMessageType))
  .map((type) => type as unknown as AnyType)
  .map((ours) => ({ name: ours.typeName, ours, theirs: root.lookupType(ours.typeName) }));

export function pairOf(name: string): Pair {
  const pair = corpus.find((candidate) => candidate.name === name);
  if (pair === undefined) throw new Error(`${name} is not in the corpus`);
  return pair;
}

// --- values ---

const wideRange = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
const unsignedRange = { min: 0n, max: 2n ** 64n - 1n };

/**
 * Any well-formed string. Lone surrogates have a separate test, because protobufjs writes them as invalid
 * UTF-8.
 */
const text = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ maxLength: 90, size: 'max' }),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ unit: fc.constantFrom('a', 'é', '漢', '😀', '\ufffd'), maxLength: 90 }),
);

const small = fc.oneof(
  fc.constantFrom(0, 1, -1, 127, 128, 16383, 16384, 2 ** 31 - 1, -(2 ** 31)),
  fc.integer(),
);
const natural = fc.oneof(fc.constantFrom(0, 1, 127, 128, 2 ** 31, 2 ** 32 - 1), fc.nat({ max: 2 ** 32 - 1 }));
const bytes = fc.oneof(fc.uint8Array({ maxLength: 10 }), fc.uint8Array({ minLength: 60, maxLength: 300 }));

const scalars: Record<string, fc.Arbitrary<unknown>> = {
  double: fc.oneof(fc.double(), fc.constantFrom(0, -0, Number.NaN)),
  float: fc.float(),
  int32: small,
  uint32: natural,
  sint32: small,
  fixed32: natural,
  sfixed32: small,
  int64: fc.bigInt(wideRange),
  uint64: fc.bigInt(unsignedRange),
  sint64: fc.bigInt(wideRange),
  fixed64: fc.bigInt(unsignedRange),
  sfixed64: fc.bigInt(wideRange),
  bool: fc.boolean(),
  string: text,
  bytes,
};

/**
 * protobufjs represents 64-bit numbers as objects of this class. The types of protobufjs do not list the
 * static methods.
 */
const Long = protobuf.util.Long as unknown as { fromString(digits: string, unsigned: boolean): unknown };

const { longFromHash } = protobuf.util as unknown as {
  longFromHash(hash: string, unsigned: boolean): unknown;
};

const signed64 = new Set(['int64', 'sint64', 'sfixed64']);
const unsigned64 = new Set(['uint64', 'fixed64']);

export function isWide(type: string): boolean {
  return signed64.has(type) || unsigned64.has(type);
}

function scalarOf(field: protobuf.Field, depth: number, overrides: Overrides): fc.Arbitrary<unknown> {
  const own = overrides[field.resolvedType?.fullName.slice(1) ?? ''];
  if (own !== undefined) return own;
  if (field.resolvedType instanceof protobuf.Enum) return small;
  if (field.resolvedType instanceof protobuf.Type) return initOf(field.resolvedType, depth - 1, overrides);
  if (isWide(field.type)) {
    const jstype = field.options?.jstype;
    const safe = fc
      .maxSafeInteger()
      .map((number) => (unsigned64.has(field.type) ? Math.abs(number) : number));
    if (jstype === 'JS_NUMBER') return safe;
    const wide = scalars[field.type] as fc.Arbitrary<unknown>;
    return jstype === 'JS_STRING' ? wide.map(String) : wide;
  }
  return scalars[field.type] as fc.Arbitrary<unknown>;
}

function keyOf(type: string): fc.Arbitrary<string> {
  if (type === 'string')
    return fc.oneof(text, fc.constantFrom('__proto__', 'constructor', 'toString', '1', ''));
  return (scalars[type] as fc.Arbitrary<unknown>).map((key) => String(Object.is(key, -0) ? 0 : key));
}

function isOptionalOneof(oneof: protobuf.OneOf | null): boolean {
  return oneof === null || oneof.fieldsArray.some((field) => field.options?.proto3_optional === true);
}

/** Values of some messages and enums, by full name. */
export type Overrides = { readonly [typeName: string]: fc.Arbitrary<unknown> };

/** Returns an Init of our type, in which every key may be missing. */
export function initOf(type: protobuf.Type, depth = 2, overrides: Overrides = {}): fc.Arbitrary<AnyMessage> {
  const keys: Record<string, fc.Arbitrary<unknown>> = {};
  for (const field of type.fieldsArray) {
    if (field.resolvedType instanceof protobuf.Type && depth === 0) continue;
    if (!isOptionalOneof(field.partOf)) continue;
    const value = scalarOf(field, depth, overrides);
    const key = propertyName(field.name);
    if (field instanceof protobuf.MapField) {
      keys[key] = fc.dictionary(keyOf(field.keyType), value, { maxKeys: 3 });
    } else keys[key] = field.repeated ? fc.array(value, { maxLength: 4, size: 'small' }) : value;
  }
  for (const oneof of type.oneofsArray) {
    if (isOptionalOneof(oneof)) continue;
    const cases = oneof.fieldsArray
      .filter((field) => !(field.resolvedType instanceof protobuf.Type && depth === 0))
      .map((field) =>
        fc.record({ case: fc.constant(propertyName(field.name)), value: scalarOf(field, depth, overrides) }),
      );
    keys[propertyName(oneof.name)] = fc.oneof(fc.constant({ case: undefined }), ...cases);
  }
  return fc.record(keys, { requiredKeys: [] });
}

// --- conversion ---

type Convert = (field: protobuf.Field, value: unknown) => unknown;

/** protobufjs represents 64-bit keys of decoded maps as the eight characters of their bits. */
function keyName(field: protobuf.Field, key: string): string {
  const type = field instanceof protobuf.MapField ? field.keyType : '';
  return isWide(type) && key.length === 8 && !/^-?\d+$/.test(key)
    ? String(longFromHash(key, unsigned64.has(type)))
    : key;
}

function convertField(field: protobuf.Field, value: unknown, convert: Convert, into: object): unknown {
  if (field.map) {
    const copy = into as AnyMessage;
    for (const [key, entry] of Object.entries(value as object)) {
      Object.defineProperty(copy, keyName(field, key), {
        value: convert(field, entry),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
    return copy;
  }
  return field.repeated ? (value as unknown[]).map((entry) => convert(field, entry)) : convert(field, value);
}

/** Converts our message to the object that protobufjs encodes. */
export function toTheirs(type: protobuf.Type, message: AnyMessage): protobuf.Message {
  const result = type.create() as unknown as AnyMessage;
  const convert: Convert = (field, value) => {
    if (field.resolvedType instanceof protobuf.Type) return toTheirs(field.resolvedType, value as AnyMessage);
    return isWide(field.type) ? Long.fromString(String(value), unsigned64.has(field.type)) : value;
  };
  for (const field of type.fieldsArray) {
    let value = message[propertyName(field.name)];
    if (!isOptionalOneof(field.partOf)) {
      const chosen = message[propertyName(field.partOf?.name ?? '')] as
        | { case?: string; value?: unknown }
        | undefined;
      value = chosen?.case === propertyName(field.name) ? chosen.value : undefined;
    }
    if (value !== undefined) result[field.name] = convertField(field, value, convert, {});
  }
  return result as unknown as protobuf.Message;
}

/** Converts an object that protobufjs has decoded to the result of our decoder. */
export function fromTheirs(type: protobuf.Type, message: AnyMessage): AnyMessage {
  const result: AnyMessage = {};
  const wide = (field: protobuf.Field, value: unknown) => {
    const jstype = field.options?.jstype;
    return jstype === 'JS_STRING'
      ? String(value)
      : jstype === 'JS_NUMBER'
        ? Number(String(value))
        : BigInt(String(value));
  };
  const convert: Convert = (field, value) => {
    if (field.resolvedType instanceof protobuf.Type)
      return fromTheirs(field.resolvedType, value as AnyMessage);
    if (isWide(field.type)) return wide(field, value);
    return value instanceof Uint8Array ? new Uint8Array(value) : value;
  };
  for (const field of type.fieldsArray) {
    const present =
      Object.hasOwn(message, field.name) && message[field.name] !== null && message[field.name] !== undefined;
    if (!isOptionalOneof(field.partOf)) {
      const key = propertyName(field.partOf?.name ?? '');
      if (present)
        result[key] = { case: propertyName(field.name), value: convert(field, message[field.name]) };
      else result[key] ??= { case: undefined };
      continue;
    }
    const key = propertyName(field.name);
    if (present)
      result[key] = convertField(field, message[field.name], convert, Object.create(null) as object);
    else if (field.repeated) result[key] = [];
    else if (field.map) result[key] = {};
    else if (!field.hasPresence && !(field.resolvedType instanceof protobuf.Type))
      result[key] = defaultOf(field, wide);
  }
  return result;
}

function defaultOf(field: protobuf.Field, wide: (field: protobuf.Field, value: unknown) => unknown): unknown {
  if (field.resolvedType instanceof protobuf.Enum) return 0;
  if (isWide(field.type)) return wide(field, 0);
  if (field.type === 'bytes') return new Uint8Array(0);
  return field.type === 'string' ? '' : field.type === 'bool' ? false : 0;
}
