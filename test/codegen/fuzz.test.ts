/** Damaged .proto files: whatever is in them, the generator gives output or a GenerateError with a place. Seeded, so a failure repeats. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { globSync } from 'tinyglobby';
import { describe, expect, test } from 'vitest';
import type { Diagnostic } from '../../codegen/diagnostic.ts';
import { buildModel } from '../../codegen/model/build.ts';
import { tokenize } from '../../codegen/source/lexer.ts';
import { type ProtoSource, parseSource } from '../../codegen/source/proto-source.ts';

const seed = 20_261_123;
const directory = join(dirname(fileURLToPath(import.meta.url)), '..', 'codec', 'protos');
const protos = globSync('**/*.proto', { cwd: directory }).sort();

/** What the generator says about one file, its imports left out. */
function complaints(text: string): readonly Diagnostic[] {
  const source = parseSource('a.proto', 'a.proto', text);
  if (!('root' in source)) return [source];
  return buildModel(new Map<string, ProtoSource>([['a.proto', source]]), true).diagnostics;
}

describe.each(protos)('%s', (path) => {
  const text = readFileSync(join(directory, path), 'utf8');
  const words = tokenize(text).map((token) => token.text);
  const lines = (source: string) => source.split('\n').length;

  test('with tokens removed, doubled, swapped or replaced', () => {
    const edit = fc.record({
      at: fc.nat({ max: words.length - 1 }),
      kind: fc.constantFrom('remove', 'double', 'swap', 'replace'),
      word: fc.constantFrom(
        ';',
        '{',
        '}',
        '=',
        '[',
        ']',
        '<',
        '"',
        '/*',
        '0',
        '-1',
        'map',
        'oneof',
        'repeated',
        'Missing',
        ...words,
      ),
    });
    const property = fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), (edits) => {
      const damaged = [...words];
      for (const { at, kind, word } of edits) {
        if (kind === 'remove') damaged.splice(at, 1);
        else if (kind === 'double') damaged.splice(at, 0, words[at] as string);
        else if (kind === 'swap') damaged.splice(at, 2, words[at + 1] ?? '', words[at] as string);
        else damaged[at] = word;
      }
      const source = damaged.map((word) => (/[;{}]/.test(word) ? `${word}\n` : word)).join(' ');
      for (const { severity, line, column, message } of complaints(source)) {
        expect(['error', 'warning']).toContain(severity);
        expect(line).toBeGreaterThan(0);
        expect(line).toBeLessThanOrEqual(lines(source));
        expect(column).toBeGreaterThan(0);
        expect(message).not.toBe('');
      }
    });
    fc.assert(property, { seed, numRuns: 300 });
  });

  test('cut off anywhere', () => {
    const property = fc.property(fc.nat({ max: text.length }), (end) => {
      for (const { line } of complaints(text.slice(0, end))) expect(line).toBeLessThanOrEqual(lines(text));
    });
    fc.assert(property, { seed, numRuns: 150 });
  });
});
