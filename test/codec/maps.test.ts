/** Map fields: keys that are listed once for `bound` and `encodeTo`, whatever comes between the two; number keys with and without gaps. */
import { mapsMax, Sink } from 'rdma-rpc/codec';
import { describe, expect, test } from 'vitest';
import { Maps, type MapsInit, Tree, type TreeInit } from './gen/everything.rdma.ts';

const message: MapsInit = {
  byInt32: { 5: 'a', '-7': 'b', 2147483647: 'c' },
  byUint32: { 4294967295: new Uint8Array([1]) },
  byBool: { true: 'yes', false: 'no' },
  byString: { x: { fInt32: 1 } },
  textByString: { __proto__: null, constructor: 'mine' } as unknown as { [key: string]: string },
};

function encodeInto(sink: Sink, init: MapsInit): Uint8Array {
  return sink.bytes.slice(0, Maps.encodeTo(init, sink, 0));
}

describe('the keys that bound has listed', () => {
  const expected = Maps.encode(message);
  const sink = new Sink();

  test('are those that are encoded', () => {
    sink.reset(new Uint8Array(1024));
    Maps.bound(message, sink);
    expect(sink.maps).toBe(5);
    expect(encodeInto(sink, message)).toEqual(expected);
    expect(sink.mapAt).toBe(5);
  });

  test('are listed again behind a reset, or for another message', () => {
    sink.reset(new Uint8Array(1024));
    expect(sink.maps).toBe(0);
    expect(encodeInto(sink, message)).toEqual(expected);
    sink.reset(new Uint8Array(1024));
    Maps.bound({ byInt32: { 1: 'other' } }, sink);
    expect(encodeInto(sink, message)).toEqual(expected);
  });

  test('belong to the first maps of a message; the others are listed twice', () => {
    const tree: TreeInit = {
      children: Array.from({ length: mapsMax + 5 }, (_, i) => ({ named: { [`n${i}`]: { label: `${i}` } } })),
    };
    const decoded = Tree.decode(Tree.encode(tree));
    expect(decoded.children).toHaveLength(mapsMax + 5);
    decoded.children.forEach((child, i) => {
      expect(child.named[`n${i}`]!.label).toBe(`${i}`);
    });
  });

  test('are forgotten by reset: a sink keeps no message alive', () => {
    sink.reset(new Uint8Array(1024));
    Maps.bound(message, sink);
    sink.reset(new Uint8Array(1024));
    expect(sink.map.every((map) => map instanceof Uint8Array)).toBe(true);
    expect(sink.mapKeys.every((keys) => keys.length === 0)).toBe(true);
  });
});

describe('number keys', () => {
  test.each([
    ['dense', Array.from({ length: 100 }, (_, i) => i)],
    ['with gaps', Array.from({ length: 100 }, (_, i) => i * 1000)],
    ['descending', Array.from({ length: 100 }, (_, i) => 5000 - i * 40)],
    ['negative and large', [-1, -(2 ** 31), 2 ** 31 - 1, 2 ** 30, 2 ** 30 - 1, 0]],
  ])('%s', (_what, keys) => {
    const byInt32 = Object.fromEntries(keys.map((key) => [key, `v${key}`]));
    const decoded = Maps.decode(Maps.encode({ byInt32 }));
    expect(decoded.byInt32).toEqual(byInt32);
    expect(Object.keys(decoded.byInt32)).toHaveLength(keys.length);
  });

  test('a key that is there twice, between maps with gaps', () => {
    const a = Maps.encode({ byInt32: { 1000: 'a', 70000: 'b' }, byUint32: { 90000: new Uint8Array([1]) } });
    const b = Maps.encode({ byInt32: { 1000: 'c', [2 ** 30]: 'd' }, byUint32: { 50: new Uint8Array([2]) } });
    const { byInt32, byUint32 } = Maps.decode(Buffer.concat([a, b, a]));
    expect(byInt32).toEqual({ 1000: 'a', 70000: 'b', [2 ** 30]: 'd' });
    expect(Object.keys(byUint32)).toEqual(['50', '90000']);
  });
});
