/**
 * Reads options that affect generated code. The options of proto/rdma_rpc/options.proto change the generated
 * code. All other custom options are passed on as plain data in protobuf's JSON form. This file is used while
 * the model is built.
 */
import { shortFloat } from '../../runtime/codec/float.ts';
import { labels, typeName } from '../descriptor/types.ts';
import type { Schema } from '../link/schema.ts';
import { type OptionField, OptionTree, type TreeValue } from '../options/tree.ts';
import type { ArrayName, MethodOptions, Plain } from './model.ts';

/** Numbers of the extensions in proto/rdma_rpc/options.proto. */
const ours = {
  bulkThreshold: 51720,
  oneWay: 51721,
  expectedResponseBytes: 51722,
  preferredCodec: 51723,
  defaultCodec: 51724,
  typedArray: 51725,
} as const;

const isOurs = ({ extension }: OptionField): boolean => extension?.startsWith('rdma_rpc.') === true;

/** Returns the value of one of our options. An extension of another project may have the same number. */
function own(options: OptionTree | undefined, number: number): TreeValue | undefined {
  const entry = options?.values.get(number);
  return entry !== undefined && isOurs(entry.field) ? entry.list.at(-1) : undefined;
}

export function bulkThreshold(options: OptionTree | undefined): number | undefined {
  const value = own(options, ours.bulkThreshold);
  return value === undefined ? undefined : Number(value);
}

const arrayNames: readonly (ArrayName | undefined)[] = [
  undefined,
  'Int8',
  'Uint16',
  'Int16',
  'Uint32',
  'Int32',
  'BigUint64',
  'BigInt64',
  'Float32',
  'Float64',
];

/**
 * Returns the typed array that the option of a field selects. `report` is called with the reason when the
 * option is wrong.
 */
export function typedArray(
  options: OptionTree | undefined,
  isBytes: boolean,
  hasDefault: boolean,
  report: (message: string) => void,
): ArrayName | undefined {
  const value = own(options, ours.typedArray);
  if (value === undefined) return undefined;
  const name = arrayNames[Number(value)];
  if (!isBytes) report('(rdma_rpc.typed_array) is for fields of bytes');
  else if (hasDefault && name !== undefined) report('(rdma_rpc.typed_array) is for fields without a default');
  else if (Number(value) >= arrayNames.length)
    report(`rdma_rpc.TypedArray ${value} is not known to this version`);
  else return name;
  return undefined;
}

const codecs = new Map([
  [0n, 'PROTOBUF'],
  [1n, 'MSGPACK'],
] as const);

/**
 * Returns the codec option of a method or, for all methods of a service, of the service. Returns a number
 * when the value comes from a newer options.proto.
 */
function codecOf(
  options: OptionTree | undefined,
  number: number,
): 'PROTOBUF' | 'MSGPACK' | bigint | undefined {
  const value = own(options, number) as bigint | undefined;
  return value === undefined ? undefined : (codecs.get(value as 0n) ?? value);
}

/**
 * Returns the options of a method. `report` is called with the parts that this version of the generator does
 * not support.
 */
export function methodOptions(
  schema: Schema,
  options: OptionTree | undefined,
  serviceOptions: OptionTree | undefined,
  report: (message: string) => void,
): MethodOptions {
  const level = options?.integer(34) ?? 0;
  const expected = own(options, ours.expectedResponseBytes);
  const codec = codecOf(options, ours.preferredCodec) ?? codecOf(serviceOptions, ours.defaultCodec);
  if (typeof codec === 'bigint')
    report(
      `rdma_rpc.Codec ${codec} is not known to this version; it knows ${[...codecs.values()].join(', ')}`,
    );
  return {
    idempotencyLevel: level === 1 ? 'NO_SIDE_EFFECTS' : level === 2 ? 'IDEMPOTENT' : undefined,
    oneWay: own(options, ours.oneWay) === true,
    expectedResponseBytes: expected === undefined ? undefined : Number(expected),
    preferredCodec: codec === 'MSGPACK' ? 'MSGPACK' : undefined,
    custom: customOptions(schema, options),
  };
}

/** Returns extensions by full name, except our own, or undefined when there are no extensions. */
export function customOptions(schema: Schema, options: OptionTree | undefined): Plain | undefined {
  const entries = [...(options?.values.values() ?? [])]
    .filter(({ field }) => field.extension !== undefined && !isOurs(field))
    .map(({ field, list }): [string, Plain] => [field.extension ?? '', plainField(schema, field, list)]);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function plainField(schema: Schema, field: OptionField, list: readonly TreeValue[]): Plain {
  const { descriptor } = field;
  if (descriptor.label !== labels.repeated) return plain(schema, field, list.at(-1) as TreeValue);
  const isEntry = list.every(
    (value) => value instanceof OptionTree && value.message.descriptor.options?.[0] === 0x38,
  );
  if (!isEntry || list.length === 0) return list.map((value) => plain(schema, field, value));
  return Object.fromEntries(
    list.map((entry) => {
      const { key = '', value = null } = plainMessage(schema, entry as OptionTree);
      return [String(key), value];
    }),
  );
}

function plain(schema: Schema, { descriptor }: OptionField, value: TreeValue): Plain {
  if (value instanceof OptionTree) return plainMessage(schema, value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  const type = typeName(descriptor.type) ?? '';
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return String(value);
    return type === 'float' ? shortFloat(value) : value;
  }
  if (typeof value !== 'bigint') return value;
  if (type !== 'enum') return type.endsWith('64') ? String(value) : Number(value);
  const found = schema.get(descriptor.typeName ?? '');
  const named =
    found?.kind === 'enum'
      ? found.descriptor.value.find(({ number }) => BigInt(number ?? 0) === value)
      : undefined;
  return named?.name ?? Number(value);
}

function plainMessage(schema: Schema, tree: OptionTree): { readonly [key: string]: Plain } {
  return Object.fromEntries(
    [...tree.values.values()].map(({ field, list }) => [
      field.extension === undefined
        ? (field.descriptor.jsonName ?? field.descriptor.name ?? '')
        : `[${field.extension}]`,
      plainField(schema, field, list),
    ]),
  );
}
