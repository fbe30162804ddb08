/**
 * Tests blocks of a loopback context. The tests check which code keeps the blocks, and that no block is left
 * when they are released.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { Blocks } from '../../runtime/loopback/blocks.ts';

let blocks: Blocks;
beforeEach(() => {
  blocks = new Blocks();
});

describe('a block', () => {
  test('has memory of its size, always the same memory, and its number', () => {
    const block = blocks.alloc(100);
    expect(blocks.memoryOf(block).byteLength).toBe(100);
    expect(blocks.lend(block)).toBe(blocks.memoryOf(block));
    expect(blocks.numberOf(blocks.memoryOf(block))).toBe(block);
    expect([blocks.count, blocks.leasedBytes]).toEqual([1, 100]);
  });

  test('is freed with its last reference', () => {
    const block = blocks.alloc(100);
    blocks.addReference(block);
    blocks.release(block);
    expect(blocks.sizeOf(block)).toBe(100);
    blocks.release(block);
    expect([blocks.sizeOf(block), blocks.count, blocks.leasedBytes]).toEqual([0, 0, 0]);
    expect(() => blocks.memoryOf(block)).toThrow(`loopback: block ${block} has been released`);
  });

  test('whose memory is taken has no view of it left', () => {
    const block = blocks.alloc(100);
    const view = new Uint8Array(blocks.lend(block));
    blocks.take(block);
    expect([view.length, blocks.count]).toEqual([0, 0]);
  });

  test('whose memory is taken is empty for all other references', () => {
    const block = blocks.alloc(100);
    blocks.lend(block);
    blocks.addReference(block);
    blocks.take(block);
    expect([blocks.sizeOf(block), blocks.count]).toEqual([0, 1]);
    blocks.release(block);
    expect(blocks.count).toBe(0);
  });

  test('that was released twice, or never existed, changes nothing', () => {
    const block = blocks.alloc(100);
    blocks.release(block);
    for (const each of [block, 12_345]) {
      blocks.release(each);
      blocks.take(each);
      blocks.addReference(each);
    }
    expect([blocks.count, blocks.leasedBytes]).toEqual([0, 0]);
  });
});

test('no two blocks have the same number, even after others were released', () => {
  const kept = blocks.alloc(1);
  const numbers = new Set([kept]);
  for (let i = 0; i < 100; ++i) {
    const block = blocks.alloc(1);
    expect(numbers.has(block)).toBe(false);
    numbers.add(block);
    blocks.release(block);
  }
});
