/**
 * Tests two hosts that have only a network in common: examples/kv between two namespaces, by the command of
 * its README.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { needs } from '../needs.ts';

const program = fileURLToPath(new URL('../../dist/examples/kv/two-hosts.js', import.meta.url));

needs('hosts');

test('the key-value cache over a cable between two hosts: every answer is right', {
  timeout: 240_000,
}, async ({ skip }) => {
  const { code, output } = await new Promise<{ code: unknown; output: string }>((resolve) => {
    execFile(process.execPath, [program, '0.02'], (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, output: stdout + stderr }),
    );
  });
  skip(code === 77, /not run: (.*)/.exec(output)?.[1]);
  expect(output).toMatch(/over tcp \(window\)/);
  expect([code, output]).toEqual([0, output]);
});
