/**
 * Makes random messages of any generated type from a seed. compare.mjs passes the messages to three
 * implementations. Well-known types get only values that have a form in JSON.
 */

import { fieldsOf } from '../../dist/runtime/codec/fields.js';
import {
  listFromJson,
  packAny,
  StringValue,
  structFromJson,
  valueFromJson,
} from '../../dist/runtime/codec/index.js';

/**
 * mulberry32 over an FNV-1a hash of the text, so that the same type gives the same messages on every machine.
 */
export class Random {
  #state = 0x811c9dc5;

  constructor(text) {
    for (let i = 0; i < text.length; i++)
      this.#state = Math.imul(this.#state ^ text.charCodeAt(i), 0x01000193);
  }
  /** Returns a number from 0 to `limit` - 1. */
  below(limit) {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  }
  of(list) {
    return list[this.below(list.length)];
  }
}

const words = ['', 'a', 'hello', 'Straße', '漢字', '😀 emoji', '\u0000', '"\\\n', 'x'.repeat(130), '\ufffd'];
const integers32 = [0, 1, -1, 127, 128, 300, 16_384, 2 ** 31 - 1, -(2 ** 31)];
const naturals32 = [0, 1, 127, 128, 300, 16_384, 2 ** 31, 2 ** 32 - 1];
const integers64 = [0n, 1n, -1n, 128n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)];
const naturals64 = [0n, 1n, 128n, 2n ** 53n + 1n, 2n ** 63n, 2n ** 64n - 1n];
// -0 is left out, because JSON.stringify has no text for it.
const doubles = [
  0,
  1,
  -1.5,
  0.1,
  1e300,
  5e-324,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
];
const floats = [0, 1, -1.5, 0.25, 16_777_216, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
const json = [null, true, 1.5, 'text', [], [1, 'a', null], {}, { a: { b: [false] } }];

const scalars = {
  double: doubles,
  float: floats,
  int32: integers32,
  sint32: integers32,
  sfixed32: integers32,
  uint32: naturals32,
  fixed32: naturals32,
  int64: integers64,
  sint64: integers64,
  sfixed64: integers64,
  uint64: naturals64,
  fixed64: naturals64,
  bool: [true, false],
  string: words,
};

const nanos = [0, 1, 500_000_000, 999_999_999];
const special = {
  'google.protobuf.Timestamp': (random) => ({
    seconds: random.of([0n, 1n, -62_135_596_800n, 253_402_300_799n]),
    nanos: random.of(nanos),
  }),
  'google.protobuf.Duration': (random) => {
    const sign = random.of([1, -1]);
    return {
      seconds: BigInt(sign) * random.of([0n, 1n, 315_575_999_999n]),
      nanos: sign * random.of(nanos) + 0,
    };
  },
  'google.protobuf.FieldMask': (random) => ({ paths: random.of([[], ['a'], ['foo_bar.baz', 'q']]) }),
  'google.protobuf.Struct': (random) => structFromJson(random.of([{}, { a: 1, b: json }])),
  'google.protobuf.ListValue': (random) => listFromJson(random.of([[], json])),
  'google.protobuf.Value': (random) => valueFromJson(random.of(json)),
  'google.protobuf.Any': (random) => random.of([{}, packAny(StringValue, { value: 'inside' })]),
};

/** Maximum nesting of messages. */
const depthMax = 3;
/**
 * Maximum number of fields of one random message, including those inside of it. Some types have hundreds of
 * other types inside.
 */
const fieldsMax = 300;

function single(random, field, depth, budget) {
  if (field.message !== undefined) return message(random, field.message, depth + 1, budget);
  if (field.enum !== undefined) return random.of(Object.values(field.enum));
  if (field.scalar === 'bytes')
    return Uint8Array.from({ length: random.of([0, 1, 5, 200]) }, () => random.below(256));
  const value = random.of(scalars[field.scalar]);
  if (typeof value !== 'bigint' || field.jstype === 'bigint') return value;
  return field.jstype === 'string' ? String(value) : Number(BigInt.asIntN(50, value < 0n ? 0n : value));
}

function mapOf(random, field, depth, budget) {
  const map = {};
  const key = () => (field.mapKey === 'string' ? random.of(words) : String(random.of(scalars[field.mapKey])));
  for (let i = random.below(3); i >= 0; i--) map[key()] = single(random, field, depth, budget);
  return map;
}

function fieldValue(random, field, depth, budget) {
  if (field.presence === 'map') return mapOf(random, field, depth, budget);
  if (field.presence !== 'repeated') return single(random, field, depth, budget);
  return Array.from({ length: 1 + random.below(3) }, () => single(random, field, depth, budget));
}

/** A type that requires itself, directly or through other types, has no finite message. */
export class Endless extends Error {}

/** Returns a value for `type.encode`. */
export function message(random, type, depth = 0, budget = { left: fieldsMax }) {
  const own = special[type.typeName];
  if (own !== undefined) return own(random);
  if (depth > 50) throw new Endless(type.typeName);
  const init = {};
  for (const field of fieldsOf(type)) {
    const wanted = random.below(depth === 0 ? 10 : 3) > (depth === 0 ? 2 : 1);
    const holds = field.message !== undefined && depth >= depthMax;
    if (field.presence !== 'required' && (!wanted || holds || budget.left <= 0)) continue;
    if (field.oneof !== undefined && init[field.oneof] !== undefined) continue;
    budget.left--;
    const value = fieldValue(random, field, depth, budget);
    if (field.oneof === undefined) init[field.key] = value;
    else init[field.oneof] = { case: field.key, value };
  }
  return init;
}
