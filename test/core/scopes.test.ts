/**
 * Tests how the runtime detects Node's implementation of AsyncLocalStorage (core/scopes.ts).
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, expect, test, vi } from 'vitest';

afterEach(() => vi.restoreAllMocks());

test('inRoot() enters no store, because Node 20 and 22 would then run every promise of the process with hooks', async () => {
  const enters = vi.spyOn(AsyncLocalStorage.prototype, 'enterWith');
  const runs = vi.spyOn(AsyncLocalStorage.prototype, 'run');
  vi.resetModules();
  const { inRoot } = await import('../../runtime/core/scopes.ts');
  expect(inRoot(() => 'called')).toBe('called');
  expect(enters).not.toHaveBeenCalled();
  expect(runs).not.toHaveBeenCalled();
});
