/**
 * The measured messages, one row for each. speed.ts calls these functions.
 */
import type { MessageType } from 'rdma-rpc/codec';
import {
  Blob,
  type BlobInit,
  Maps,
  type MapsInit,
  Medium,
  type MediumInit,
  Node,
  type NodeInit,
  Numbers,
  type NumbersInit,
  Small,
  type SmallInit,
  State,
  Strings,
  type StringsInit,
} from './gen/codec.rdma.ts';

export interface Case {
  readonly name: string;
  readonly type: MessageType<unknown, unknown>;
  readonly message: object;
}

const small: SmallInit = {
  id: 12_345,
  delta: 250,
  sequence: 4_200_000n,
  name: 'inventory',
  host: 'node-7.eu-west',
  retry: true,
};

const medium: MediumInit = {
  id: 'ord-2026-000123',
  title: 'Spare parts for the harbour crane',
  description: 'Two boxes of bolts, one of nuts, washers',
  version: 7,
  createdMs: 1_790_000_000_000n,
  updatedMs: 1_790_000_123_456n,
  price: 129.95,
  weight: 2.5,
  active: true,
  state: State.STATE_OPEN,
  from: { street: 'Harbour Road 12', city: 'Rotterdam', zip: 3011, country: 'NL' },
  to: { street: 'Station Square 1', city: 'Antwerp', zip: 2018, country: 'BE' },
  tags: ['metal', 'heavy', 'express'],
  counts: [1, 20, 300, 4000],
  labels: { team: 'blue', region: 'eu-west', tier: 'gold' },
  balance: -250,
  checksum: 0x0123_4567_89ab_cdefn,
  note: 'Ring twice',
  digest: new Uint8Array(32).fill(7),
  owner: 99n,
};

/** Returns `count` values of `make`. */
const many = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

/**
 * Returns a flat string. A slice refers to the string from which it was cut, which makes every read of the
 * slice slower.
 */
const flat = (text: string): string => Buffer.from(text).toString();

const words = 'the quick brown fox jumps over the lazy dog and runs far away from the barking hounds '.repeat(
  3,
);

const strings: StringsInit = {
  values: many(64, (i) => {
    const text = words.slice(i, i + 3 + ((i * i * 7) % 41) + (i % 16 === 0 ? 160 : 0));
    return flat(i % 8 === 5 ? `Größe ${text} 漢字` : text);
  }),
};

const numbers: NumbersInit = {
  i32: -5,
  u32: 3_000_000_000,
  s32: -70_000,
  f32: 0xdead_beef,
  i64: -1n,
  u64: 2n ** 63n + 12_345n,
  s64: -(2n ** 40n),
  sf64: -(2n ** 60n),
  real: 0.5,
  precise: Math.PI,
  ints: many(64, (i) => (i * 2_654_435) % 100_003),
  longs: many(32, (i) => BigInt(i) * 1_000_000_007n),
  deltas: many(64, (i) => (i % 2 === 0 ? i * 3 : -i * 50)),
  floats: many(32, (i) => i / 4),
  doubles: many(32, (i) => Math.sqrt(i)),
};

const tree = (depth: number, id: number): NodeInit => ({
  id,
  label: flat(`node ${id}`),
  children: depth === 0 ? [] : many(3, (i) => tree(depth - 1, id * 3 + i + 1)),
});

const maps: MapsInit = {
  labels: Object.fromEntries(many(16, (i) => [`label-${i}`, flat(words.slice(i, i + 12))])),
  counts: Object.fromEntries(many(16, (i) => [i * 1000, i * i])),
  offices: Object.fromEntries(
    many(8, (i) => [
      `office-${i}`,
      { street: `Main Street ${i}`, city: 'Ghent', zip: 9000 + i, country: 'BE' },
    ]),
  ),
};

const blob: BlobInit = { key: 'blob-1', value: new Uint8Array(64 * 1024).map((_, i) => i) };

const row = <Init extends object>(name: string, type: MessageType<unknown, Init>, message: Init): Case => ({
  name,
  type: type as MessageType<unknown, unknown>,
  message,
});

export const cases: readonly Case[] = [
  row('small', Small, small),
  row('medium', Medium, medium),
  row('many strings', Strings, strings),
  row('many numbers', Numbers, numbers),
  row('nested', Node, tree(4, 0)),
  row('maps', Maps, maps),
  row('64 KiB bytes', Blob, blob),
];

/**
 * Returns whether strings are more than half of the encoding. Creating strings is then most of the work of
 * any decoder in JavaScript.
 */
export function stringsDominate({ type, message }: Case): boolean {
  const count = (value: unknown): number => {
    if (typeof value === 'string') return Buffer.byteLength(value);
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return 0;
    const keys = Array.isArray(value)
      ? 0
      : Object.getPrototypeOf(value) === null
        ? count(Object.keys(value))
        : 0;
    return Object.values(value).reduce((sum: number, each) => sum + count(each), keys);
  };
  const encoded = type.encode(message);
  // Decoded maps have no prototype, which distinguishes their keys from field names.
  return count(type.decode(encoded)) > encoded.length / 2;
}
