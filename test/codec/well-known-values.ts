/**
 * Generates random well-known messages with valid contents, such as valid times, JSON, and an Any of a known
 * type. Random fields would not be valid. The values override those of `initOf`.
 */
import fc from 'fast-check';
import { BoolValue, listFromJson, packAny, StringValue, structFromJson, valueFromJson } from 'rdma-rpc/codec';
import type { JsonObject, JsonValue } from 'rdma-rpc/json';
import type { Overrides } from './corpus.ts';

const nanosMax = 999_999_999;
const nanos = fc.oneof(fc.constantFrom(0, 5e8, 1_000, nanosMax), fc.nat({ max: nanosMax }));

/** Omits the key that protobuf-es drops. */
const json = fc
  .jsonValue({ maxDepth: 3 })
  .map((value) => JSON.parse(JSON.stringify(value).replaceAll('__proto__', 'proto')) as JsonValue);
const jsonObject = fc
  .dictionary(fc.string({ maxLength: 5 }), json, { maxKeys: 3, noNullPrototype: true })
  .map((value) => JSON.parse(JSON.stringify(value).replaceAll('__proto__', 'proto')) as JsonObject);

const path = fc
  .array(fc.stringMatching(/^[a-z]{1,4}(_[a-z]{1,4}){0,2}$/), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.join('.'));

export const meaningful: Overrides = {
  // JSON has only one kind of null.
  'google.protobuf.NullValue': fc.constant(0),
  'google.protobuf.Timestamp': fc.record({
    seconds: fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n }),
    nanos,
  }),
  'google.protobuf.Duration': fc
    .tuple(fc.bigInt({ min: 0n, max: 315_576_000_000n }), nanos, fc.boolean())
    .map(([seconds, rest, negative]) => ({
      seconds: negative ? -seconds : seconds,
      nanos: negative ? 0 - rest : rest,
    })),
  'google.protobuf.FieldMask': fc.record({ paths: fc.array(path, { maxLength: 3 }) }),
  'google.protobuf.Struct': jsonObject.map((value) => structFromJson(value)),
  'google.protobuf.ListValue': fc.array(json, { maxLength: 3 }).map((value) => listFromJson(value)),
  'google.protobuf.Value': json.map((value) => valueFromJson(value)),
  'google.protobuf.Any': fc.oneof(
    fc.constant({}),
    fc.string().map((value) => packAny(StringValue, { value })),
    fc.boolean().map((value) => packAny(BoolValue, { value })),
  ),
};
