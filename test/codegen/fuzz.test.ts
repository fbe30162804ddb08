/** Damaged .proto files: whatever is in them, the generator gives output or a GenerateError with a place. Seeded, so a failure repeats. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { globSync } from 'tinyglobby';
import { afterAll, describe, expect, test } from 'vitest';
import type { Diagnostic } from '../../codegen/diagnostic.ts';
import { loadFiles } from '../../codegen/load.ts';
import { buildModel } from '../../codegen/model/build.ts';
import { display } from '../../codegen/source/files.ts';
import { tokenize } from '../../codegen/source/lexer.ts';

const seed = 20_261_123;
const directory = join(dirname(fileURLToPath(import.meta.url)), '..', 'codec', 'protos');
const protos = globSync('**/*.proto', { cwd: directory }).sort();

const place = mkdtempSync(join(tmpdir(), 'rdma-rpc-fuzz-'));
afterAll(() => rmSync(place, { recursive: true, force: true }));

/** What the generator says about one file. */
function complaints(text: string): readonly Diagnostic[] {
  const file = join(place, 'damaged.proto');
  writeFileSync(file, text);
  const { schema, diagnostics } = loadFiles([file], [place, directory], true);
  if (diagnostics.every(({ severity }) => severity === 'warning'))
    buildModel(schema, { runtimeApart: true, unknownFields: 'drop' });
  return diagnostics.filter((diagnostic) => diagnostic.file === display(file));
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
    fc.assert(property, { seed, numRuns: 150 });
  });

  test('cut off anywhere', () => {
    const property = fc.property(fc.nat({ max: text.length }), (end) => {
      for (const { line } of complaints(text.slice(0, end))) expect(line).toBeLessThanOrEqual(lines(text));
    });
    fc.assert(property, { seed, numRuns: 80 });
  });
});
