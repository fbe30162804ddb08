/**
 * Tests damaged .proto files. For any contents, the generator gives output or a GenerateError with a
 * position. The test is seeded, so that a failure is reproducible. RDMA_RPC_SEEDS=500 damages each file more
 * often.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { globSync } from 'tinyglobby';
import { afterAll, describe, expect, test } from 'vitest';
import type { Diagnostic } from '../../codegen/diagnostic.ts';
import { loadFiles } from '../../codegen/load.ts';
import { buildModel } from '../../codegen/model/build.ts';
import { display } from '../../codegen/source/files.ts';
import { tokenize } from '../../codegen/source/lexer.ts';
import { runs } from '../extent.ts';

const seed = 20_261_123;
/**
 * The number of times that each file's words are changed. The file is truncated half as often, and gets
 * unusual characters a third as often.
 */
const times = Number(process.env.RDMA_RPC_SEEDS ?? runs(60));
const here = dirname(fileURLToPath(import.meta.url));
const folders = [join(here, '..', 'codec', 'protos'), join(here, 'protos')];
const protos = folders.flatMap((folder) => globSync('**/*.proto', { cwd: folder, absolute: true }).sort());

const place = mkdtempSync(join(tmpdir(), 'rdma-rpc-fuzz-'));
afterAll(() => rmSync(place, { recursive: true, force: true }));

/** Returns the messages that the generator prints about one file. */
function complaints(text: string): readonly Diagnostic[] {
  const file = join(place, 'damaged.proto');
  writeFileSync(file, text);
  const { schema, diagnostics } = loadFiles([file], [place, ...folders], true);
  // Builds the model as generate() does, also for files with errors.
  buildModel(schema, { runtimeApart: true, unknownFields: 'drop' });
  return diagnostics.filter((diagnostic) => diagnostic.file === display(file));
}

describe.each(protos.map((path) => [relative(join(here, '..'), path), path]))('%s', (_name, path) => {
  const text = readFileSync(path as string, 'utf8');
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
    fc.assert(property, { seed, numRuns: times });
  });

  test('cut off anywhere', () => {
    const property = fc.property(fc.nat({ max: text.length }), (end) => {
      for (const { line } of complaints(text.slice(0, end))) expect(line).toBeLessThanOrEqual(lines(text));
    });
    fc.assert(property, { seed, numRuns: Math.ceil(times / 2) });
  });

  test('with inserted characters that are invalid, or valid elsewhere', () => {
    const strange = fc.oneof(
      fc.constantFrom(
        '\0',
        '\ufeff',
        '\u2028',
        '\r',
        '\r\n',
        '\v',
        '😀',
        'ä',
        '"',
        "'",
        '\\',
        '*/',
        '/*',
        '//',
        '#',
        '\ud800',
      ),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 3 }),
    );
    const insertion = fc.record({ at: fc.nat({ max: text.length }), strange });
    const property = fc.property(fc.array(insertion, { minLength: 1, maxLength: 3 }), (insertions) => {
      let source = text;
      for (const each of insertions) source = source.slice(0, each.at) + each.strange + source.slice(each.at);
      for (const { line, column, message } of complaints(source)) {
        expect(line).toBeGreaterThan(0);
        expect(line).toBeLessThanOrEqual(lines(source));
        expect(column).toBeGreaterThan(0);
        expect(message).not.toBe('');
      }
    });
    fc.assert(property, { seed, numRuns: Math.ceil(times / 3) });
  });
});

describe.each(folders.map((folder) => [relative(join(here, '..'), folder), folder]))(
  '%s',
  (_name, folder) => {
    const own = protos.filter((file) => file.startsWith(`${folder}/`));

    test.each(own.map((file) => relative(folder as string, file)))(
      'a syntax error in %s causes no error elsewhere',
      (path) => {
        const text = readFileSync(join(folder as string, path), 'utf8');
        const file = join(place, 'broken', path);
        mkdirSync(dirname(file), { recursive: true });
        try {
          for (const source of [
            'message {',
            text.slice(0, text.length / 2).concat('\nmessage {'),
            `${text}\nmessage {`,
          ]) {
            writeFileSync(file, source);
            const rest = own.filter((other) => relative(folder as string, other) !== path);
            const include = [join(place, 'broken'), ...folders];
            const { schema, diagnostics } = loadFiles([file, ...rest], include, true);
            buildModel(schema, { runtimeApart: true, unknownFields: 'drop' });
            const errors = diagnostics.filter(({ severity }) => severity === 'error');
            expect(errors).not.toEqual([]);
            expect(errors.filter((each) => each.file !== display(file))).toEqual([]);
          }
        } finally {
          rmSync(file);
        }
      },
    );
  },
);
