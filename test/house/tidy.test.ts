/**
 * Tests house rules that linters do not have: sizes, layers, words that must not occur in the tree, and texts
 * that name files.
 */
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';
import { circles, circlesIn, nativeLayers, typescriptLayers, violations } from './layers.ts';
import { exists, projectFiles, read } from './tree.ts';

const files = projectFiles();
const SOURCE = /\.(ts|mjs|h|cc|cmake)$/;
/** These are files written by people; the generator's output follows its own rules. */
const sources = files.filter((file) => SOURCE.test(file) && !file.endsWith('.rdma.ts'));

const LINES_MAX = 400;
const COLUMNS_MAX = 110;
const isGenerated = (file: string): boolean => /\.rdma\.ts$/.test(file);
/** Files that may be longer, each with the reason why it is nevertheless one concept. */
const LONGER: Readonly<Record<string, string>> = {};

describe('every source file', () => {
  test(`has at most ${LINES_MAX} lines`, () => {
    const long = sources.filter((file) => read(file).split('\n').length - 1 > LINES_MAX);
    expect(long.sort()).toEqual(Object.keys(LONGER).sort());
  });

  test(`has comments of at most ${COLUMNS_MAX} columns, except for tables and usages`, () => {
    const comment = /^\s*(\*|\/\/|\/\*)/;
    const asItIs = /^ \* ( {2,}|\|)|biome-ignore/;
    const wide = sources
      .filter((file) => /\.m?ts$|\.mjs$/.test(file) && !isGenerated(file))
      .filter((file) =>
        read(file)
          .split('\n')
          .some((line) => line.length > COLUMNS_MAX && comment.test(line) && !asItIs.test(line)),
      );
    expect(wide).toEqual([]);
  });

  test('has each directive of a tool at the beginning of a comment line, where the tool looks for it', () => {
    const directive =
      /shellcheck (disable|source|shell)=|clang-format (off|on)$|biome-ignore(-all)? (lint|format)/;
    const own = /^[^#/*]*(#|\/\/|\/?\*+) *(shellcheck|clang-format|biome-ignore)/;
    const misplaced = [...sources, ...files.filter((file) => /\.sh$|^\.ci\//.test(file))].flatMap((file) =>
      read(file)
        .split('\n')
        .filter((line) => directive.test(line) && !own.test(line) && !line.includes('const directive'))
        .map((line) => `${file}: ${line}`),
    );
    expect(misplaced).toEqual([]);
  });

  test('begins with its purpose', () => {
    const opening = /^(#!.*\n)?(\/\*\*|\/\/|#)/;
    expect(sources.filter((file) => !opening.test(read(file)))).toEqual([]);
  });

  test('has a fixed seed for each test of properties, so that each run has the same result', () => {
    const properties = sources.filter((file) => /\bfc\.assert\(/.test(read(file)));
    expect(properties.filter((file) => !/\bseed\b/.test(read(file)))).toEqual([]);
    expect(properties).not.toEqual([]);
  });

  test('is not called utils, helpers or common', () => {
    expect(files.filter((file) => /(^|[/_-])(utils?|helpers?|common|misc)[./]/.test(file))).toEqual([]);
  });
});

test('the addon uses nothing that the libstdc++ of the package lacks (native/portable.cmake): it is GCC 10', () => {
  const newer =
    /\bstd::(bit_cast|format|expected|print|move_only_function)\b|<(format|expected|print|generator)>/;
  const code = (file: string) => read(file).replace(/\/\/.*/g, '');
  const native = sources.filter((file) => /^native\/.*\.(h|cc)$/.test(file));
  expect(native.filter((file) => newer.test(code(file)))).toEqual([]);
  expect(native).not.toEqual([]);
});

test('limits stand in one file, or beside the feature that has them; each says its reason, and none has two names', () => {
  const places = files.filter(
    (file) => /^runtime\/.*limits\.ts$/.test(file) && file !== 'runtime/server/time-limits.ts',
  );
  expect(places.sort()).toEqual([
    'runtime/client/connections/limits.ts',
    'runtime/codec/limits.ts',
    'runtime/control/verbs-limits.ts',
    'runtime/discovery/limits.ts',
    'runtime/limits.ts',
    'runtime/memory/limits.ts',
    'runtime/reverse/limits.ts',
    'runtime/services/limits.ts',
    'runtime/socket/limits.ts',
    'runtime/workers/limits.ts',
  ]);
  const names = places.flatMap((file) =>
    [...read(file).matchAll(/^export const (\w+)/gm)].map(([, name]) => name),
  );
  expect(new Set(names).size).toBe(names.length);
  const bare = places.flatMap((file) =>
    [...read(file).matchAll(/\n\nexport const (\w+)/g)].map(([, name]) => name),
  );
  expect(bare, 'limits without a reason').toEqual([]);
});

describe('layers', () => {
  const imports = (file: string) =>
    [...read(file).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map((match) =>
      normalize(join(dirname(file), match[1]!)),
    );
  const typescript = files.filter((file) => file.endsWith('.ts'));

  test('of TypeScript', () => {
    expect(typescript.flatMap((file) => violations(file, imports(file), typescriptLayers))).toEqual([]);
  });

  test('each part of the runtime has a rule', () => {
    const without = typescript.filter(
      (file) => file.startsWith('runtime/') && !typescriptLayers.some((rule) => rule.files.test(file)),
    );
    expect(without).toEqual([]);
  });

  test('no files of the runtime, the generator and the command line import each other in a circle, except the listed ones', () => {
    const code = typescript.filter((file) => /^(runtime|codegen|cli)\//.test(file));
    expect(circlesIn(new Map(code.map((file) => [file, imports(file)])))).toEqual(circles);
  });

  test('of C++', () => {
    const includes = (file: string) =>
      [...read(file).matchAll(/^#include "([^"]+)"/gm)].map((match) => join('native', match[1]!));
    const native = files.filter((file) => /^native\/.*\.(h|cc)$/.test(file));
    expect(native.flatMap((file) => violations(file, includes(file), nativeLayers))).toEqual([]);
  });

  test('the rules find violations', () => {
    expect(
      violations('runtime/codec/primitives/read.ts', ['runtime/boundary/outgoing/bulk.ts'], typescriptLayers),
    ).toHaveLength(1);
    expect(violations('runtime/server/server.ts', ['codegen/index.ts'], typescriptLayers)).toHaveLength(1);
    expect(
      violations('runtime/client/channel.ts', ['runtime/server/server.ts'], typescriptLayers),
    ).toHaveLength(1);
    expect(
      violations('runtime/server/server.ts', ['runtime/client/channel.ts'], typescriptLayers),
    ).toHaveLength(1);
    expect(violations('native/session/a.cc', ['native/fabric/shm/shm.h'], nativeLayers)).toHaveLength(1);
    expect(violations('native/fabric/sim/a.cc', ['native/fabric/shm/shm.h'], nativeLayers)).toHaveLength(1);
    expect(
      violations('native/fabric/tcp/queue/a.cc', ['native/fabric/shm/shm.h'], nativeLayers),
    ).toHaveLength(1);
    expect(violations('native/memory/a.cc', ['native/fabric/fabric.h'], nativeLayers)).toHaveLength(0);
    const uses = Object.entries({
      a: ['b', 'x'],
      b: ['c', 'd'],
      c: ['a'],
      d: ['e'],
      e: ['d'],
      f: ['a', 'f'],
    });
    expect(circlesIn(new Map(uses))).toEqual([
      ['a', 'b', 'c'],
      ['d', 'e'],
    ]);
  });
});

describe('no file contains', () => {
  // The words are composed here, so that this file does not contain them either.
  const words: Readonly<Record<string, RegExp>> = {
    'a path of the machine it was made on': new RegExp(['(^|[^\\w.])', 'work', '(main|shared)\\b'].join('/')),
    'a home directory': new RegExp(['', '(root|home)', '[\\w.]'].join('/')),
    'a mark of unfinished work': new RegExp(`\\b(${['TO', 'FIX', 'X'].join('|')})(DO|ME|XX)\\b`),
    'a test that runs alone': new RegExp(`\\b(test|it|describe)\\.${'only'}\\(`),
  };
  for (const [what, pattern] of Object.entries(words)) {
    test(what, () => {
      const found = files.filter((file) => file !== 'package-lock.json' && pattern.test(read(file)));
      expect(found).toEqual([]);
    });
  }

  test('the address of a package registry', () => {
    const locks = files.filter((file) => file.endsWith('package-lock.json'));
    expect(locks).toContain('package-lock.json');
    expect(locks.filter((file) => read(file).includes('"resolved"'))).toEqual([]);
    const host = ['registry', 'npmjs'].join('.');
    expect(files.filter((file) => read(file).includes(host))).toEqual([]);
  });
});

describe('a text that names a file names an existing file', () => {
  const PATH =
    /(?<![\w./-])(?:native|runtime|codegen|cli|examples|test|bench|docs|scripts|proto|\.ci)\/[\w./-]*\w/g;
  /** Paths that a build makes. A path of a package or of a protocol may look like a path of this project. */
  const ELSEWHERE = /(^|\/)gen(\/|$)/;
  const missing = (file: string, text: string) =>
    [...text.matchAll(PATH)]
      .map((match) => match[0])
      .filter((path) => !ELSEWHERE.test(path) && !exists(path))
      .map((path) => `${file}: ${path}`);

  test('in documents', () => {
    const documents = files.filter((file) => file.endsWith('.md'));
    expect(documents.flatMap((file) => missing(file, read(file)))).toEqual([]);
  });

  test('in links between documents', () => {
    const broken = files
      .filter((file) => file.endsWith('.md'))
      .flatMap((file) =>
        [...read(file).matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
          .map((match) => join(dirname(file), match[1]!))
          .filter((path) => !exists(path))
          .map((path) => `${file}: ${path}`),
      );
    expect(broken).toEqual([]);
  });

  test('in the opening comment of a source file', () => {
    const opening = (text: string) =>
      /^(?:#!.*\n)?(?:\/\*\*[\s\S]*?\*\/|(?:\/\/.*\n)+|(?:#.*\n)+)/.exec(text)?.[0] ?? '';
    expect(sources.flatMap((file) => missing(file, opening(read(file))))).toEqual([]);
  });

  test('in the pictures of the runtime, which have each of its folders', () => {
    const folders = [...new Set(files.map((file) => /^runtime\/([^/]+)\//.exec(file)?.[1]))].filter(Boolean);
    const page = read('docs/ARCHITECTURE.md');
    const [picture = ''] = /^ application [\s\S]*?^ ──/m.exec(page) ?? [];
    expect(folders.filter((name) => !new RegExp(`^ .*\\b${name}\\b`, 'm').test(picture))).toEqual([]);
    expect(folders.filter((name) => !page.includes(`\`runtime/${name}/\``))).toEqual([]);
  });

  test('in commands of the documents', () => {
    const scripts = Object.keys((JSON.parse(read('package.json')) as { scripts: object }).scripts);
    const unknown = files
      .filter((file) => file.endsWith('.md'))
      .flatMap((file) =>
        [...read(file).matchAll(/npm run ([\w-]+)/g)].map((match) => `${file}: ${match[1]!}`),
      )
      .filter((use) => !scripts.includes(use.split(': ')[1]!));
    expect(unknown).toEqual([]);
  });
});
