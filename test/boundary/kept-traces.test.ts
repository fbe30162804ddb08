/**
 * When sessions fail again and again, only some trace files are kept; the tests check which ones.
 * Unauthenticated peers must not displace files of other sessions.
 */
import { expect, test } from 'vitest';
import { KeptTraces } from '../../runtime/boundary/traces/kept-traces.ts';
import { traceFilesMax, tracePauseMs } from '../../runtime/limits.ts';

/**
 * Returns the files after these failures. Each failure comes the given number of ms after the previous one.
 */
function filesAfter(failures: readonly string[], everyMs: number): string[] {
  const kept = new KeptTraces(traceFilesMax);
  const files = new Set<string>();
  for (const [i, reason] of failures.entries()) {
    const nowMs = i * everyMs;
    if (!kept.wants(reason, nowMs)) continue;
    const path = `${i} ${reason}`;
    files.add(path);
    const replaced = kept.add(path, reason, nowMs);
    if (replaced !== undefined) expect(files.delete(replaced)).toBe(true);
    expect(files.size).toBeLessThanOrEqual(traceFilesMax);
  }
  return [...files];
}

const flood = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => `the peer 'peer ${'x'.repeat(i % 7)}' sent frame ${i} of kind 9`);

test('a failure after a flood of others leaves its trace, and keeps it through the next flood', () => {
  const files = filesAfter([...flood(1000), 'transport retry exceeded', ...flood(1000)], tracePauseMs);
  expect(files).toHaveLength(traceFilesMax);
  expect(files).toContain('1000 transport retry exceeded');
  // The newest file of the flood is also kept.
  expect(files.at(-1)).toMatch(/^2000 /);
});

test('many failures write at most one file per pause once the limit is reached', () => {
  const files = filesAfter(flood(1000), tracePauseMs / 1000);
  expect(files.map((file) => Number(file.split(' ')[0]))).toEqual(
    Array.from({ length: traceFilesMax }, (_, i) => i),
  );
});

test('with more reasons than files, the newest files are kept', () => {
  const reasons = Array.from({ length: 26 }, (_, i) => `reason ${String.fromCharCode(97 + i)}`);
  expect(filesAfter(reasons, 0)).toEqual(
    reasons.slice(-traceFilesMax).map((reason, i) => `${i + 10} ${reason}`),
  );
});
