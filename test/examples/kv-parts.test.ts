/**
 * Tests the parts of the key-value example that need no connection: values that can be verified, the store's
 * budget, and the tables.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Recorder } from '../../examples/kv/recorder.ts';
import { bytesText, callTable, summary, timeText } from '../../examples/kv/report.ts';
import { Store } from '../../examples/kv/store.ts';
import { travelRows } from '../../examples/kv/transport.ts';
import { checkValue, fillValue } from '../../examples/kv/values.ts';

fc.configureGlobal({ seed: 20_261_121 });

const keys = fc.string({ minLength: 1, maxLength: 20 });
const versions = fc.integer({ min: 1, max: 1e6 });
const sizes = fc.integer({ min: 8, max: 200 });

function madeValue(key: string, version: number, bytes: number): Uint8Array {
  const value = new Uint8Array(bytes);
  fillValue(value, key, version);
  return value;
}

describe('a value', () => {
  it('proves itself, wherever in memory it lies', () => {
    fc.assert(
      fc.property(keys, versions, sizes, fc.nat({ max: 7 }), (key, version, bytes, offset) => {
        const memory = new Uint8Array(bytes + 8);
        memory.set(madeValue(key, version, bytes), offset);
        expect(checkValue(memory.subarray(offset, offset + bytes), key, version)).toBe(true);
      }),
    );
  });

  it('is not another version or another key', () => {
    fc.assert(
      fc.property(keys, versions, sizes, (key, version, bytes) => {
        const value = madeValue(key, version, bytes);
        expect(checkValue(value, key, version + 1)).toBe(false);
        expect(checkValue(value, `${key}.`, version)).toBe(false);
      }),
    );
  });

  it('is not one with any single byte changed', () => {
    fc.assert(
      fc.property(keys, sizes, fc.nat(), fc.integer({ min: 1, max: 255 }), (key, bytes, place, change) => {
        const value = madeValue(key, 1, bytes);
        value[place % bytes]! ^= change;
        expect(checkValue(value, key, 1)).toBe(false);
      }),
    );
  });
});

describe('the store', () => {
  const kilobyte = new Uint8Array(1024).fill(1);

  it('releases the memory that it took, and keeps its own copy', () => {
    const store = new Store(1 << 20);
    const value = Uint8Array.of(1, 2, 3);
    expect(store.put('a', 1, value)).toBe('added');
    value.fill(9);
    expect(store.get('a')).toEqual({ version: 1, value: Uint8Array.of(1, 2, 3) });
    expect(store.put('a', 2, value)).toBe('replaced');
    expect(store.get('a')?.version).toBe(2);
    expect(store.delete('a')).toBe(true);
    expect(store.delete('a')).toBe(false);
    expect(store.get('a')).toBeUndefined();
  });

  it('never overwrites a value in place: a reader of the old one can continue', () => {
    const store = new Store(1 << 20);
    store.put('a', 1, Uint8Array.of(1));
    const old = store.get('a')!.value;
    store.put('a', 2, Uint8Array.of(2));
    expect(old).toEqual(Uint8Array.of(1));
  });

  it('refuses a value that does not fit and keeps the old entry', () => {
    const store = new Store(3000);
    expect(store.put('a', 1, kilobyte)).toBe('added');
    expect(store.put('b', 1, kilobyte)).toBe('added');
    expect(store.put('c', 1, kilobyte)).toBe('full');
    expect(store.put('a', 2, new Uint8Array(2500))).toBe('full');
    expect(store.get('a')).toEqual({ version: 1, value: kilobyte });
    expect(store.put('a', 2, kilobyte)).toBe('replaced');
  });

  it('counts back to 0 after any operations, and never exceeds its budget', () => {
    const operation = fc.record({
      key: fc.constantFrom('a', 'b', 'c'),
      bytes: fc.nat({ max: 2000 }),
      put: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 40 }), (operations) => {
        const store = new Store(4000);
        for (const { key, bytes, put } of operations) {
          if (put) store.put(key, 1, new Uint8Array(bytes));
          else store.delete(key);
          expect(store.bytes).toBeLessThanOrEqual(store.budgetBytes);
        }
        for (const key of ['a', 'b', 'c']) store.delete(key);
        expect([store.bytes, store.size]).toEqual([0, 0]);
      }),
    );
  });
});

describe('the tables', () => {
  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1536, '1.50 KiB'],
    [64 * 1024 * 1024, '64.0 MiB'],
  ])('write %d bytes as %s', (bytes, text) => {
    expect(bytesText(bytes)).toBe(text);
  });

  it.each([
    [1.234, '1.23 us'],
    [12_345, '12.3 ms'],
    [2_500_000, '2.50 s'],
  ])('write %d us as %s', (us, text) => {
    expect(timeText(us)).toBe(text);
  });

  it('have a line for each operation and size, with exact percentiles', () => {
    const recorder = new Recorder();
    for (let us = 1; us <= 100; us++) recorder.of('Get', '16 B').record(us);
    recorder.of('Delete', '16 B').record(9);
    recorder.of('Put', '1 MiB').record(5);
    recorder.of('Put', '16 B').record(9);
    recorder.of('Put', '1 MiB').errors = 1;
    expect(recorder.rows()).toMatchObject([
      { operation: 'Get', size: '16 B', calls: 100, p50Us: 50, p99Us: 99, p999Us: 100 },
      { operation: 'Put', size: '16 B', calls: 1 },
      { operation: 'Delete', size: '16 B', calls: 1 },
      { operation: 'Put', size: '1 MiB', calls: 1, errors: 1 },
    ]);
    const report = { rows: recorder.rows(), errors: ['Put x: wrong bytes'], elapsedMs: 1500 };
    expect(callTable(report).split('\n')).toHaveLength(6);
    expect(summary(report)).toBe('103 calls in 1.5 s: 1 calls went wrong\n  Put x: wrong bytes');
    expect(summary({ ...report, errors: [] })).toContain('every value was the right one');
  });

  it('show a counter that one side lacks as 0', () => {
    const rows = travelRows({ bulkReads: 3 }, {});
    expect(rows.find((row) => row.way.includes('READs by the server'))).toMatchObject({
      client: 3,
      server: 0,
    });
  });
});
