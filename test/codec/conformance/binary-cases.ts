/**
 * Lists binary inputs, named as in protobuf's conformance suite. The expected result is the message as JSON,
 * or a refusal. conformance.test.ts uses this file.
 */
import type { JsonValue } from 'rdma-rpc/json';

export interface BinaryCase {
  readonly name: string;
  readonly level: 'required' | 'recommended';
  readonly input: Uint8Array;
  readonly output: JsonValue | 'refused';
}

// --- the wire format, written independently of the codec ---

type Bytes = readonly number[];

function varint(value: bigint | number): number[] {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes: number[] = [];
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return [...bytes, Number(rest)];
}
const tag = (field: number, wireType: number): number[] => varint(field * 8 + wireType);
const delimited = (content: Bytes): number[] => [...varint(content.length), ...content];
const utf8 = (text: string): number[] => [...Buffer.from(text)];
const zigzag = (value: bigint): bigint => (value << 1n) ^ (value >> 63n);
function little(bits: 32 | 64, write: (view: DataView) => void): number[] {
  const view = new DataView(new ArrayBuffer(bits / 8));
  write(view);
  return [...new Uint8Array(view.buffer)];
}
const fixed32 = (value: number) => little(32, (view) => view.setUint32(0, value, true));
const fixed64 = (value: bigint) =>
  little(64, (view) => view.setBigUint64(0, BigInt.asUintN(64, value), true));
const float = (value: number) => little(32, (view) => view.setFloat32(0, value, true));
const double = (value: number) => little(64, (view) => view.setFloat64(0, value, true));

/** A type of field: its numbers and JSON names in the schema, and its test values with their JSON form. */
interface Kind {
  readonly name: string;
  readonly wireType: 0 | 1 | 2 | 5;
  readonly field: number;
  readonly json: string;
  readonly repeated: number;
  readonly repeatedJson: string;
  /** Each value with its JSON form. The first is the default, which JSON omits. */
  readonly values: readonly (readonly [bytes: Bytes, json: JsonValue])[];
  readonly packable: boolean;
}

const kind = (
  name: string,
  wireType: Kind['wireType'],
  field: number,
  values: Kind['values'],
  suffix = `${name[0]}${name.slice(1).toLowerCase()}`,
): Kind => ({
  name,
  wireType,
  field,
  json: `optional${suffix}`,
  repeated: field + 30,
  repeatedJson: `repeated${suffix}`,
  values,
  packable: wireType !== 2,
});

const max32 = 0x7fff_ffff;
const max64 = 2n ** 63n - 1n;
const kinds: readonly Kind[] = [
  kind('INT32', 0, 1, [
    [varint(0), 0],
    [varint(12345), 12345],
    [varint(max32), max32],
    [varint(-(2n ** 31n)), -(2 ** 31)],
    [varint((1n << 33n) + 5n), 5],
  ]),
  kind('INT64', 0, 2, [
    [varint(0), '0'],
    [varint(12345), '12345'],
    [varint(max64), String(max64)],
    [varint(-(2n ** 63n)), String(-(2n ** 63n))],
  ]),
  kind('UINT32', 0, 3, [
    [varint(0), 0],
    [varint(2 ** 32 - 1), 2 ** 32 - 1],
    [varint((1n << 33n) + 5n), 5],
  ]),
  kind('UINT64', 0, 4, [
    [varint(0), '0'],
    [varint(2n ** 64n - 1n), String(2n ** 64n - 1n)],
  ]),
  kind('SINT32', 0, 5, [
    [varint(0), 0],
    [varint(zigzag(BigInt(max32))), max32],
    [varint(zigzag(-(2n ** 31n))), -(2 ** 31)],
  ]),
  kind('SINT64', 0, 6, [
    [varint(0), '0'],
    [varint(zigzag(max64)), String(max64)],
    [varint(zigzag(-(2n ** 63n))), String(-(2n ** 63n))],
  ]),
  kind('FIXED32', 5, 7, [
    [fixed32(0), 0],
    [fixed32(2 ** 32 - 1), 2 ** 32 - 1],
  ]),
  kind('FIXED64', 1, 8, [
    [fixed64(0n), '0'],
    [fixed64(2n ** 64n - 1n), String(2n ** 64n - 1n)],
  ]),
  kind('SFIXED32', 5, 9, [
    [fixed32(0), 0],
    [fixed32(max32), max32],
    [fixed32(2 ** 31), -(2 ** 31)],
  ]),
  kind('SFIXED64', 1, 10, [
    [fixed64(0n), '0'],
    [fixed64(max64), String(max64)],
    [fixed64(-(2n ** 63n)), String(-(2n ** 63n))],
  ]),
  kind('FLOAT', 5, 11, [
    [float(0), 0],
    [float(0.125), 0.125],
    [float(Number.NaN), 'NaN'],
    [float(Number.NEGATIVE_INFINITY), '-Infinity'],
    [fixed32(1), 1.4013e-45],
    [fixed32(0x7f80_0001), 'NaN'],
  ]),
  kind('DOUBLE', 1, 12, [
    [double(0), 0],
    [double(0.1), 0.1],
    [double(Number.NaN), 'NaN'],
    [double(Number.POSITIVE_INFINITY), 'Infinity'],
    [double(5e-324), 5e-324],
    [fixed64(0xfff8_0000_0000_0001n), 'NaN'],
  ]),
  kind('BOOL', 0, 13, [
    [varint(0), false],
    [varint(1), true],
    [varint(12345678), true],
    [varint(1n << 63n), true],
  ]),
  kind('STRING', 2, 14, [
    [delimited([]), ''],
    [delimited(utf8('Hello world!')), 'Hello world!'],
    [delimited(utf8('\'"?\\\b\r\n\f\t\u0000')), '\'"?\\\b\r\n\f\t\u0000'],
    [delimited(utf8('谷歌😁')), '谷歌😁'],
  ]),
  kind('BYTES', 2, 15, [
    [delimited([]), ''],
    [delimited([1, 2]), 'AQI='],
    [delimited([0xfb, 0xff]), '+/8='],
  ]),
  kind(
    'MESSAGE',
    2,
    18,
    [
      [delimited([]), {}],
      [delimited([8, ...varint(1234)]), { a: 1234 }],
    ],
    'NestedMessage',
  ),
  kind(
    'ENUM',
    0,
    21,
    [
      [varint(0), 'FOO'],
      [varint(1), 'BAR'],
      [varint(-1), 'NEG'],
      [varint(77), 77],
    ],
    'NestedEnum',
  ),
];

const packed: Readonly<Record<string, readonly [packed: number, unpacked: number]>> = {
  INT32: [75, 89],
  DOUBLE: [86, 100],
  BOOL: [87, 101],
  ENUM: [88, 102],
};

const built: BinaryCase[] = [];
function add(level: BinaryCase['level'], name: string, input: Bytes, output: BinaryCase['output']): void {
  built.push({ name, level, input: new Uint8Array(input), output });
}

/** A field number that the schema does not have. */
const unknown = 666;
const first = (each: Kind) => each.values[0] ?? [[], null];
const last = (each: Kind) => each.values.at(-1) ?? [[], null];

// --- input that ends too early ---

for (const each of kinds) {
  const { name, wireType, field, repeated } = each;
  const cut: Readonly<Record<number, Bytes>> = { 0: [0x80], 1: [1, 2, 3, 4, 5, 6, 7], 2: [5], 5: [1, 2, 3] };
  for (const [place, number] of [
    ['KnownNonRepeatedValue', field],
    ['KnownRepeatedValue', repeated],
    ['UnknownValue', unknown],
  ] as const) {
    add('required', `PrematureEofBefore${place}.${name}`, tag(number, wireType), 'refused');
    const inside = cut[wireType] ?? [];
    if (wireType !== 2)
      add('required', `PrematureEofInside${place}.${name}`, [...tag(number, wireType), ...inside], 'refused');
    else add('required', `PrematureEofInDelimitedDataFor${place}.${name}`, [...tag(number, 2), 1], 'refused');
  }
  if (each.packable) {
    add(
      'required',
      `PrematureEofInPackedFieldValue.${name}`,
      [...tag(repeated, 2), ...delimited(cut[wireType] ?? [])],
      'refused',
    );
    add(
      'required',
      `PrematureEofInPackedField.${name}`,
      [...tag(repeated, 2), 10, ...first(each)[0]],
      'refused',
    );
  }
  if (name === 'MESSAGE')
    add(
      'required',
      'PrematureEofInSubmessageValue.MESSAGE',
      [...tag(field, 2), ...delimited([8, 0x80])],
      'refused',
    );
}

// --- every type, alone, repeated and in a oneof ---

for (const each of kinds) {
  const { name, wireType, field, json, repeated, repeatedJson, values } = each;
  const hasPresence = name === 'MESSAGE';
  const absent = first(each)[1];
  values.forEach(([bytes, value], i) => {
    const output = value === absent && !hasPresence ? {} : { [json]: value };
    add('required', `ValidDataScalar.${name}[${i}]`, [...tag(field, wireType), ...bytes], output);
  });
  const run = values.flatMap(([bytes]) => [...tag(repeated, wireType), ...bytes]);
  const list = values.map(([, value]) => value);
  if (!hasPresence) {
    const lastAlone = values.flatMap(([bytes]) => [...tag(field, wireType), ...bytes]);
    add('required', `RepeatedScalarSelectsLast.${name}`, lastAlone, { [json]: last(each)[1] });
  }
  add('required', `ValidDataRepeated.${name}.UnpackedInput`, run, { [repeatedJson]: list });
  if (each.packable) {
    const content = delimited(values.flatMap(([bytes]) => [...bytes]));
    add('required', `ValidDataRepeated.${name}.PackedInput`, [...tag(repeated, 2), ...content], {
      [repeatedJson]: list,
    });
    const numbers = packed[name];
    if (numbers !== undefined) {
      const suffix = repeatedJson.slice('repeated'.length);
      const one = values.flatMap(([bytes]) => [...tag(numbers[0], wireType), ...bytes]);
      add('recommended', `ValidDataRepeated.${name}.UnpackedInput.PackedField`, one, {
        [`packed${suffix}`]: list,
      });
      const all = [...tag(numbers[1], 2), ...content];
      add('recommended', `ValidDataRepeated.${name}.PackedInput.UnpackedField`, all, {
        [`unpacked${suffix}`]: list,
      });
    }
  }
}

const oneofs: Readonly<Record<string, readonly [field: number, json: string]>> = {
  UINT32: [111, 'oneofUint32'],
  MESSAGE: [112, 'oneofNestedMessage'],
  STRING: [113, 'oneofString'],
  BYTES: [114, 'oneofBytes'],
  BOOL: [115, 'oneofBool'],
  UINT64: [116, 'oneofUint64'],
  FLOAT: [117, 'oneofFloat'],
  DOUBLE: [118, 'oneofDouble'],
  ENUM: [119, 'oneofEnum'],
};
for (const each of kinds) {
  const entry = oneofs[each.name];
  if (entry === undefined) continue;
  const [field, json] = entry;
  const at = (bytes: Bytes) => [...tag(field, each.wireType), ...bytes];
  const [[zero, zeroJson], [set, setJson]] = [first(each), each.values[1] ?? first(each)];
  const other = each.name === 'UINT32' ? [...tag(113, 2), ...delimited(utf8('x'))] : [...tag(111, 0), 1];
  add('required', `ValidDataOneof.${each.name}.DefaultValue`, at(zero), { [json]: zeroJson });
  add('required', `ValidDataOneof.${each.name}.NonDefaultValue`, at(set), { [json]: setJson });
  add('required', `ValidDataOneof.${each.name}.MultipleValuesForSameField`, [...at(zero), ...at(set)], {
    [json]: setJson,
  });
  add('required', `ValidDataOneof.${each.name}.MultipleValuesForDifferentField`, [...other, ...at(set)], {
    [json]: setJson,
  });
}

// --- maps ---

const mapped = (field: number, ...entry: Bytes[]) => [...tag(field, 2), ...delimited(entry.flat())];
for (const [name, field, wireType, key, value, json, one] of [
  ['INT32.INT32', 56, 0, varint(1), varint(2), 'mapInt32Int32', { 1: 2 }],
  ['INT64.INT64', 57, 0, varint(1), varint(2), 'mapInt64Int64', { 1: '2' }],
  ['UINT32.UINT32', 58, 0, varint(1), varint(2), 'mapUint32Uint32', { 1: 2 }],
  ['UINT64.UINT64', 59, 0, varint(1), varint(2), 'mapUint64Uint64', { 1: '2' }],
  ['SINT32.SINT32', 60, 0, varint(2), varint(4), 'mapSint32Sint32', { 1: 2 }],
  ['SINT64.SINT64', 61, 0, varint(2), varint(4), 'mapSint64Sint64', { 1: '2' }],
  ['FIXED32.FIXED32', 62, 5, fixed32(1), fixed32(2), 'mapFixed32Fixed32', { 1: 2 }],
  ['FIXED64.FIXED64', 63, 1, fixed64(1n), fixed64(2n), 'mapFixed64Fixed64', { 1: '2' }],
  ['SFIXED32.SFIXED32', 64, 5, fixed32(1), fixed32(2), 'mapSfixed32Sfixed32', { 1: 2 }],
  ['SFIXED64.SFIXED64', 65, 1, fixed64(1n), fixed64(2n), 'mapSfixed64Sfixed64', { 1: '2' }],
  ['BOOL.BOOL', 68, 0, [1], [1], 'mapBoolBool', { true: true }],
  ['STRING.STRING', 69, 2, delimited(utf8('a')), delimited(utf8('b')), 'mapStringString', { a: 'b' }],
  ['STRING.BYTES', 70, 2, delimited(utf8('a')), delimited([1, 2]), 'mapStringBytes', { a: 'AQI=' }],
] as const) {
  const [k, v] = [
    [8 | wireType, ...key],
    [16 | wireType, ...value],
  ];
  const full: JsonValue = { [json]: one as JsonValue };
  add('required', `ValidDataMap.${name}.NonDefault`, mapped(field, k, v), full);
  add('required', `ValidDataMap.${name}.Unordered`, mapped(field, v, k), full);
  add('required', `ValidDataMap.${name}.DuplicateKey`, [...mapped(field, k), ...mapped(field, k, v)], full);
  add('required', `ValidDataMap.${name}.DuplicateKeyInMapEntry`, mapped(field, k, k, v), full);
  add('required', `ValidDataMap.${name}.DuplicateValueInMapEntry`, mapped(field, k, v, v), full);
}
add('required', 'ValidDataMap.INT32.INT32.MissingDefault', mapped(56), { mapInt32Int32: { 0: 0 } });
add('required', 'ValidDataMap.STRING.STRING.MissingDefault', mapped(69), { mapStringString: { '': '' } });
const half = (bytes: Bytes) => [18, ...delimited(bytes)];
add(
  'required',
  'ValidDataMap.STRING.MESSAGE.MergeValue',
  mapped(71, [10, 0], half([8, 5]), half([18, 2, 8, 6])),
  { mapStringNestedMessage: { '': { a: 5, corecursive: { optionalInt32: 6 } } } },
);
const nested = (field: number, content: Bytes) => [...tag(field, 2), ...delimited(content)];
add('required', 'ValidDataScalar.MESSAGE.Merge', [...nested(18, [8, 5]), ...nested(18, [18, 2, 8, 6])], {
  optionalNestedMessage: { a: 5, corecursive: { optionalInt32: 6 } },
});
add('required', 'ValidDataOneof.MESSAGE.Merge', [...nested(112, [8, 5]), ...nested(112, [18, 2, 8, 6])], {
  oneofNestedMessage: { a: 5, corecursive: { optionalInt32: 6 } },
});

// --- tags, groups, unknown fields, UTF-8 ---

add('required', 'IllegalZeroFieldNum_Case_0', [1, 2, 3, 4, 5, 6, 7, 8, 9], 'refused');
add('required', 'IllegalZeroFieldNum_Case_1', [2, 1, 1], 'refused');
add('required', 'IllegalZeroFieldNum_Case_2', [3, 4], 'refused');
add('required', 'IllegalZeroFieldNum_Case_3', [5, 1, 2, 3, 4], 'refused');
add('required', 'UnmatchedEndGroup', tag(201, 4), 'refused');
add('required', 'UnmatchedEndGroupUnknown', tag(1234, 4), 'refused');
add('required', 'UnmatchedEndGroupWithData', [...tag(1, 0), 1, ...tag(unknown, 4)], 'refused');
add('required', 'UnmatchedEndGroupNestedLen', nested(18, tag(1, 4)), 'refused');
add('required', 'UnmatchedEndGroupWrongType', [...tag(1, 4), 1], 'refused');
add('required', 'UnclosedGroup', tag(unknown, 3), 'refused');
add('required', 'GroupClosedByAnother', [...tag(unknown, 3), ...tag(unknown + 1, 4)], 'refused');
add('required', 'UnknownGroup', [...tag(unknown, 3), ...tag(5, 0), 1, ...tag(unknown, 4), ...tag(1, 0), 7], {
  optionalInt32: 7,
});
add('required', 'UnknownVarint', [...tag(unknown, 0), ...varint(-1), ...tag(1, 0), 7], { optionalInt32: 7 });
add('required', 'UnknownFixed', [...tag(unknown, 1), ...fixed64(1n), ...tag(unknown, 5), ...fixed32(1)], {});
add('required', 'UnknownDelimited', [...tag(unknown, 2), 3, 1, 2, 3], {});
add('required', 'BadTag_FieldNumberTooHigh', [...varint(2n ** 32n), 0], 'refused');
add(
  'required',
  'BadTag_OverlongVarint',
  [0x88, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 1],
  'refused',
);
add('required', 'BadTag_VarintMoreThanTenBytes', [...new Array<number>(10).fill(0x80), 0x01, 1], 'refused');
add('required', 'WireType6', [...varint(8 + 6), 0], 'refused');
add('required', 'WireType7', [...varint(8 + 7), 0], 'refused');
add('required', 'NegativeLength', [...tag(14, 2), ...varint(-1)], 'refused');
add('required', 'RejectInvalidUtf8.String', [...tag(14, 2), 1, 0xff], 'refused');
add('required', 'RejectInvalidUtf8.RepeatedString', [...tag(44, 2), 1, 0xa0], 'refused');
add('required', 'RejectInvalidUtf8.OneofString', [...tag(113, 2), 1, 0xc0], 'refused');
add('required', 'RejectInvalidUtf8.MapKey', mapped(69, [10, 1, 0xff], [18, 0]), 'refused');
add('required', 'RejectInvalidUtf8.MapValue', mapped(69, [10, 0], [18, 1, 0xff]), 'refused');
add('required', 'RejectInvalidUtf8.Surrogate', [...tag(14, 2), 3, 0xed, 0xa0, 0x80], 'refused');
add('required', 'BytesTakeAnything', [...tag(15, 2), 2, 0xff, 0xc0], { optionalBytes: '/8A=' });

export const binaryCases: readonly BinaryCase[] = built;
