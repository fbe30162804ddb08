/**
 * Tests the pump's settings for each JS runtime, and the runtimes that are refused.
 */
import { describe, expect, test } from 'vitest';
import { contextNeeds } from '../../runtime/native/js-runtime.ts';

const versions = (more: object) => ({ ...process.versions, ...more }) as NodeJS.ProcessVersions;

describe('the parameters of a context', () => {
  test.each([
    ['Node', {}, {}],
    ['Bun', { bun: '1.4.0' }, { loop: 'thread' }],
    ['a later Bun', { bun: '2.0.1' }, { loop: 'thread' }],
    ['Deno', { deno: '2.9.6' }, { loop: 'thread', collected: 'object' }],
  ])('%s', (_, more, needs) => {
    expect(contextNeeds(versions(more))).toEqual(needs);
  });

  test.each([
    [{ bun: '1.3.9' }, 'rdma-rpc: bun 1.3.9 is too old; use bun 1.4 or later, or Node 20.17 or later'],
    [{ bun: '0.9.0' }, 'rdma-rpc: bun 0.9.0 is too old; use bun 1.4 or later, or Node 20.17 or later'],
    [{ deno: '2.8.0' }, 'rdma-rpc: deno 2.8.0 is too old; use deno 2.9 or later, or Node 20.17 or later'],
  ])('%j is too old', (more, text) => {
    expect(() => contextNeeds(versions(more))).toThrow(text);
  });
});
