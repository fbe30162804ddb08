/**
 * Tests that contexts get the names of methods. Each name is passed once. The number of names is limited,
 * even if a program makes many names.
 */
import { expect, test } from 'vitest';
import { noteMethod, onMethodNames } from '../../runtime/boundary/traces/method-names.ts';

test('existing and new methods are reported once each, up to 8,192', () => {
  const early: number[] = [];
  const late: number[] = [];
  const stop = onMethodNames((id) => early.push(id));
  for (let i = 0; i < 10_000; ++i) {
    noteMethod(i, `a/${i}`);
    noteMethod(i, `a/${i}`);
    if (i === 100) onMethodNames((id) => late.push(id));
  }
  const all = Array.from({ length: 8192 }, (_, i) => i);
  expect([early, late]).toEqual([all, all]);
  stop();
});
