/** Lists JSON cases of the conformance tests: Timestamp, Duration, FieldMask and Any. */
import { accepted, refused } from './json-case.ts';

export const times = [
  ...accepted('required', [
    ['DurationMinValue', '{"optionalDuration":"-315576000000.999999999s"}'],
    ['DurationMaxValue', '{"optionalDuration":"315576000000.999999999s"}'],
    ['DurationRepeatedValue', '{"repeatedDuration":["1.500s","-1.500s"]}'],
    ['DurationNull', '{"optionalDuration":null}', {}],
    ['DurationNegativeSeconds', '{"optionalDuration":"-5s"}'],
    ['DurationNegativeNanos', '{"optionalDuration":"-0.500s"}'],
    ['DurationHasZeroFractionalDigit', '{"optionalDuration":"1.000000000s"}', { optionalDuration: '1s' }],
    ['DurationHas3FractionalDigits', '{"optionalDuration":"1.01s"}', { optionalDuration: '1.010s' }],
    ['DurationHas6FractionalDigits', '{"optionalDuration":"1.00001s"}', { optionalDuration: '1.000010s' }],
    [
      'DurationHas9FractionalDigits',
      '{"optionalDuration":"1.00000001s"}',
      { optionalDuration: '1.000000010s' },
    ],
    ['TimestampMinValue', '{"optionalTimestamp":"0001-01-01T00:00:00Z"}'],
    ['TimestampMaxValue', '{"optionalTimestamp":"9999-12-31T23:59:59.999999999Z"}'],
    [
      'TimestampRepeatedValue',
      '{"repeatedTimestamp":["0001-01-01T00:00:00Z","9999-12-31T23:59:59.999999999Z"]}',
    ],
    ['TimestampLeap', '{"optionalTimestamp":"2024-02-29T12:00:00Z"}'],
    [
      'TimestampWithPositiveOffset',
      '{"optionalTimestamp":"1970-01-01T08:00:01+08:00"}',
      { optionalTimestamp: '1970-01-01T00:00:01Z' },
    ],
    [
      'TimestampWithNegativeOffset',
      '{"optionalTimestamp":"1969-12-31T16:00:01-08:00"}',
      { optionalTimestamp: '1970-01-01T00:00:01Z' },
    ],
    ['TimestampNull', '{"optionalTimestamp":null}', {}],
    [
      'TimestampZeroNormalized',
      '{"optionalTimestamp":"1969-12-31T16:00:00-08:00"}',
      { optionalTimestamp: '1970-01-01T00:00:00Z' },
    ],
    [
      'TimestampHasZeroFractionalDigit',
      '{"optionalTimestamp":"1970-01-01T00:00:00.000000000Z"}',
      { optionalTimestamp: '1970-01-01T00:00:00Z' },
    ],
    [
      'TimestampHas3FractionalDigits',
      '{"optionalTimestamp":"1970-01-01T00:00:00.01Z"}',
      { optionalTimestamp: '1970-01-01T00:00:00.010Z' },
    ],
    [
      'TimestampHas6FractionalDigits',
      '{"optionalTimestamp":"1970-01-01T00:00:00.00001Z"}',
      { optionalTimestamp: '1970-01-01T00:00:00.000010Z' },
    ],
    [
      'TimestampHas9FractionalDigits',
      '{"optionalTimestamp":"1970-01-01T00:00:00.00000001Z"}',
      { optionalTimestamp: '1970-01-01T00:00:00.000000010Z' },
    ],
    ['FieldMask', '{"optionalFieldMask":"foo,barBaz"}'],
    ['FieldMaskNested', '{"optionalFieldMask":"foo.barBaz"}'],
    ['EmptyFieldMask', '{"optionalFieldMask":""}'],
  ]),
  ...refused('required', [
    ['DurationMissingS', '{"optionalDuration":"1"}'],
    ['DurationNotAString', '{"optionalDuration":1}'],
    ['DurationJsonInputTooSmall', '{"optionalDuration":"-315576000001.000000000s"}'],
    ['DurationJsonInputTooLarge', '{"optionalDuration":"315576000001.000000000s"}'],
    ['DurationTooManyDigits', '{"optionalDuration":"1.0000000000s"}'],
    ['TimestampJsonInputTooSmall', '{"optionalTimestamp":"0000-01-01T00:00:00Z"}'],
    ['TimestampJsonInputTooLarge', '{"optionalTimestamp":"10000-01-01T00:00:00Z"}'],
    ['TimestampOffsetBeyondTheYears', '{"optionalTimestamp":"9999-12-31T23:59:59-00:01"}'],
    ['TimestampJsonInputMissingZ', '{"optionalTimestamp":"0001-01-01T00:00:00"}'],
    ['TimestampJsonInputMissingT', '{"optionalTimestamp":"0001-01-01 00:00:00Z"}'],
    ['TimestampJsonInputLowercaseZ', '{"optionalTimestamp":"0001-01-01T00:00:00z"}'],
    ['TimestampJsonInputLowercaseT', '{"optionalTimestamp":"0001-01-01t00:00:00Z"}'],
    ['TimestampThatDoesNotExist', '{"optionalTimestamp":"2023-02-29T00:00:00Z"}'],
    ['TimestampHour24', '{"optionalTimestamp":"2023-02-28T24:00:00Z"}'],
  ]),
  ...refused('recommended', [
    ['FieldMaskInvalidCharacter', '{"optionalFieldMask":"foo,bar_bar"}'],
    ['FieldMaskEmptyPath', '{"optionalFieldMask":"foo,,bar"}'],
  ]),
];

const any = (fields: string) => `{"optionalAny":{${fields}}}`;
const typed = (name: string, fields: string) => any(`"@type":"type.googleapis.com/${name}",${fields}`);
const allTypes = 'corpus.conformance.AllTypes';

export const anys = [
  ...accepted('required', [
    ['Any', typed(allTypes, '"optionalInt32":12345')],
    ['AnyEmpty', any('')],
    ['AnyNull', '{"optionalAny":null}', {}],
    [
      'AnyNested',
      typed(
        'google.protobuf.Any',
        `"value":{"@type":"type.googleapis.com/${allTypes}","optionalInt32":12345}`,
      ),
    ],
    ['AnyUnorderedTypeTag', any(`"optionalInt32":12345,"@type":"type.googleapis.com/${allTypes}"`)],
    ['AnyOtherHost', any(`"@type":"example.com/a/b/${allTypes}","optionalInt32":12345`)],
    ['AnyWithInt32ValueWrapper', typed('google.protobuf.Int32Value', '"value":12345')],
    ['AnyWithDuration', typed('google.protobuf.Duration', '"value":"1.500s"')],
    ['AnyWithTimestamp', typed('google.protobuf.Timestamp', '"value":"1970-01-01T00:00:00Z"')],
    ['AnyWithFieldMask', typed('google.protobuf.FieldMask', '"value":"foo,barBaz"')],
    ['AnyWithStruct', typed('google.protobuf.Struct', '"value":{"foo":1}')],
    ['AnyWithValueForJsonObject', typed('google.protobuf.Value', '"value":{"foo":1}')],
    ['AnyWithValueForInteger', typed('google.protobuf.Value', '"value":1')],
    ['AnyWithValueForNull', typed('google.protobuf.Value', '"value":null')],
    ['AnyWithEmpty', any('"@type":"type.googleapis.com/google.protobuf.Empty"')],
    ['RepeatedAny', `{"repeatedAny":[{"@type":"type.googleapis.com/${allTypes}"},{}]}`],
  ]),
  ...refused('required', [
    ['AnyWithNoType', any('"optionalInt32":1')],
    ['AnyWktRepresentationWithEmptyTypeAndValue', any('"@type":"","value":""')],
    ['AnyWktRepresentationWithBadType', any('"@type":"not_a_url","value":""')],
    ['AnyTypeNotAString', any('"@type":1')],
    ['AnyUnknownType', any('"@type":"type.googleapis.com/no.such.Type"')],
    ['AnyWktWithoutValue', any('"@type":"type.googleapis.com/google.protobuf.Int32Value"')],
    ['AnyUnknownField', typed(allTypes, '"noSuchField":1')],
  ]),
];
