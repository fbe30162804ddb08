/**
 * Turns a table of files that follow or violate a rule of the language into tests of our generator, and of
 * protoc where this protoc supports the syntax.
 */
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { needs } from '../needs.ts';
import { diagnosticsOf, workspace } from './workspace.ts';

/** A file's body after its syntax statement, and its error, which is undefined when the file is valid. */
export type Rule = [what: string, body: string, wrong: string | undefined];

export const byErrors = (all: readonly string[]) => all.filter((each) => each.includes(': error: '));

/** Declares a test for each rule of the language. `syntax` is the first line of each file. */
export function testRules(syntax: string, rules: readonly Rule[]): void {
  test.each(rules)('%s: %s', async (_what, body, wrong) => {
    const found = byErrors(await diagnosticsOf({ 'a.proto': `${syntax}\n${body}` }));
    if (wrong === undefined) expect(found).toEqual([]);
    else {
      expect(found).toHaveLength(1);
      expect(found[0]).toContain(wrong);
      expect(found[0]).toMatch(/^a\.proto:[234]:\d+: error: /);
    }
  });

  if (!syntax.startsWith('syntax')) return; // protoc 3.21 does not support editions.
  describe('protoc agrees', () => {
    needs('protoc');

    test.each(rules)('on %s', (_what, body, wrong) => {
      const directory = workspace({ 'a.proto': `${syntax}\n${body}` });
      const { status, stderr } = spawnSync('protoc', ['-I.', '--descriptor_set_out=/dev/null', 'a.proto'], {
        cwd: directory,
        encoding: 'utf8',
      });
      expect(status === 0, stderr).toBe(wrong === undefined);
    });
  });
}
