/** Map fields: number keys with and without gaps. */
import { describe, expect, test } from 'vitest';
import { Maps } from './gen/everything.rdma.ts';

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
