/**
 * Lists messages that are written as JSON, or that must not be written. The cases have the names of
 * protobuf's conformance suite where the suite has the case. conformance.test.ts uses this file.
 */
import { packAny } from 'rdma-rpc/codec';
import { AllTypes, type AllTypesInit } from '../gen/conformance.rdma.ts';

export interface OutputCase {
  readonly name: string;
  readonly level: 'required' | 'recommended';
  readonly message: AllTypesInit;
  /** The text, or `refused` when writing must fail. */
  readonly output: string;
}

type Row = readonly [name: string, message: AllTypesInit, output: string];
const cases = (level: OutputCase['level'], rows: readonly Row[]): OutputCase[] =>
  rows.map(([name, message, output]) => ({ name, level, message, output }));

const refused = 'refused';
const mask = (...paths: string[]): AllTypesInit => ({ optionalFieldMask: { paths } });
const number = (value: number): AllTypesInit => ({ optionalValue: { kind: { case: 'numberValue', value } } });

export const outputCases: readonly OutputCase[] = [
  ...cases('required', [
    ['EmptyMessage', {}, '{}'],
    ['DefaultsAreLeftOut', { optionalInt32: 0, optionalString: '', optionalBytes: new Uint8Array(0) }, '{}'],
    ['EnumFieldUnknownValue', { optionalNestedEnum: 123 }, '{"optionalNestedEnum":123}'],
    ['OneofDefault', { oneofField: { case: 'oneofUint32', value: 0 } }, '{"oneofUint32":0}'],
    ['NullValueInOneof', { oneofField: { case: 'oneofNullValue', value: 0 } }, '{"oneofNullValue":null}'],
    ['FloatFieldNan', { optionalFloat: Number.NaN }, '{"optionalFloat":"NaN"}'],
    ['DoubleFieldInfinity', { optionalDouble: Number.POSITIVE_INFINITY }, '{"optionalDouble":"Infinity"}'],
    ['Int64AsString', { optionalInt64: 2n ** 53n }, '{"optionalInt64":"9007199254740992"}'],
    [
      'TimestampNegative',
      { optionalTimestamp: { seconds: -1n, nanos: 5e8 } },
      '{"optionalTimestamp":"1969-12-31T23:59:59.500Z"}',
    ],
    [
      'DurationNegative',
      { optionalDuration: { seconds: -1n, nanos: -1 } },
      '{"optionalDuration":"-1.000000001s"}',
    ],
    [
      'AnyOfSelf',
      { optionalAny: packAny(AllTypes, { optionalInt32: 1 }) },
      '{"optionalAny":{"@type":"type.googleapis.com/corpus.conformance.AllTypes","optionalInt32":1}}',
    ],
    ['TimestampProtoInputTooSmall', { optionalTimestamp: { seconds: -62_135_596_801n, nanos: 0 } }, refused],
    ['TimestampProtoInputTooLarge', { optionalTimestamp: { seconds: 253_402_300_800n, nanos: 0 } }, refused],
    ['TimestampProtoNegativeNanos', { optionalTimestamp: { seconds: 100n, nanos: -1 } }, refused],
    ['TimestampProtoNanoTooLarge', { optionalTimestamp: { seconds: 100n, nanos: 1_000_000_000 } }, refused],
    ['DurationProtoInputTooSmall', { optionalDuration: { seconds: -315_576_000_001n, nanos: 0 } }, refused],
    ['DurationProtoInputTooLarge', { optionalDuration: { seconds: 315_576_000_001n, nanos: 0 } }, refused],
    ['DurationProtoNanosWrongSign', { optionalDuration: { seconds: 1n, nanos: -1 } }, refused],
    ['DurationProtoNanosWrongSignNegativeSecs', { optionalDuration: { seconds: -1n, nanos: 1 } }, refused],
    ['DurationProtoNanosTooSmall', { optionalDuration: { seconds: -1n, nanos: -1_000_000_000 } }, refused],
    ['DurationProtoNanosTooLarge', { optionalDuration: { seconds: 1n, nanos: 1_000_000_000 } }, refused],
    ['ValueRejectNanNumberValue', number(Number.NaN), refused],
    ['ValueRejectInfNumberValue', number(Number.POSITIVE_INFINITY), refused],
    ['ValueHoldsNothing', { optionalValue: {} }, refused],
    ['AnyUnknownType', { optionalAny: { typeUrl: 'type.googleapis.com/no.such.Type' } }, refused],
    ['AnyMalformed', { optionalAny: { ...packAny(AllTypes, {}), value: new Uint8Array([8]) } }, refused],
  ]),
  ...cases('recommended', [
    ['FieldMaskNumbersDontRoundTrip.JsonOutput', mask('foo_3_bar'), refused],
    ['FieldMaskPathsDontRoundTrip.JsonOutput', mask('fooBar'), refused],
    ['FieldMaskTooManyUnderscore.JsonOutput', mask('foo__bar'), refused],
    ['FieldMaskTrailingUnderscore.JsonOutput', mask('foo_'), refused],
  ]),
];
