/**
 * Tests the words that the sources no longer use, folder by folder, and the names that may have only one
 * meaning. A colleague who comes from gRPC or libfabric would have to look these words up, or read them
 * twice.
 */
import { describe, expect, test } from 'vitest';
import { projectFiles, read } from './tree.ts';

/** The folders whose texts have been rewritten. Add a folder here when its texts have been rewritten. */
const REWRITTEN = [
  'bench',
  'cli',
  'codegen',
  'examples',
  'native/binding',
  'native/checked',
  'native/fabric',
  'native/memory',
  'native/perf',
  'native/seal',
  'native/session',
  'native/telemetry',
  'native/test/fabric',
  'native/test/memory',
  'native/test/model',
  'native/test/perf',
  'native/test/session',
  'native/test/telemetry',
  'native/test/verbs',
  'runtime/adapters',
  'runtime/boundary',
  'runtime/client',
  'runtime/codec',
  'runtime/control',
  'runtime/core',
  'runtime/counters',
  'runtime/details',
  'runtime/identity',
  'runtime/loopback',
  'runtime/memory',
  'runtime/msgpack',
  'runtime/native',
  'runtime/reverse',
  'runtime/server',
  'runtime/services',
  'runtime/stream',
  'runtime/tensor',
  'runtime/verbs',
  'runtime/workers',
  'scripts',
  'test/boundary',
  'test/channel',
  'test/cli',
  'test/client',
  'test/codec',
  'test/codegen',
  'test/containers',
  'test/control',
  'test/docs',
  'test/native',
  'test/neighbours',
  'test/planted',
  'test/quickstart',
  'test/rdma',
  'test/reverse',
  'test/runtime',
  'test/scripts',
  'test/security',
  'test/server',
  'test/slow',
  'test/soak',
  'test/states',
  'test/stream',
  'test/tcp',
];

interface Retired {
  /**
   * The word in lower case, as it appears in a comment, a text, or a part of a name (`kBurstMax`,
   * `burst_max`).
   */
  readonly word: RegExp;
  /** The term that replaces it. */
  readonly instead: string;
  /** The folders of REWRITTEN that still use the word; a comment gives the reason for each. */
  readonly stillIn?: readonly string[];
}

const RETIRED: readonly Retired[] = [
  { word: /greet(s|ed|ings?)?/, instead: 'connect message' },
  // Performance engineers use "burst" for calls and connection attempts, so benchmarks do too.
  { word: /bursts?/, instead: 'batch, coalesced writes', stillIn: ['bench', 'native/test/verbs'] },
  { word: /laps?/, instead: 'ring epoch' },
  // The exception is the technique with that name.
  { word: /hazards?(?! pointer)/, instead: 'in-use marker' },
  { word: /spill(s|ed)?/, instead: 'overflow slot' },
  // READs of the fabric tests have sinks; a capability of iWARP has that name.
  {
    word: /sinks?/,
    instead: 'reply buffer, writer',
    stillIn: [
      'native/binding',
      'native/fabric',
      'native/session',
      'native/test/fabric',
      'native/test/memory',
      'native/test/session',
    ],
  },
  {
    word: /holes?/,
    instead: 'out-of-line value',
    stillIn: ['native/fabric', 'native/test/fabric', 'runtime/boundary', 'test/planted'],
  },
  { word: /vanish(es|ed)?/, instead: 'gone' },
  { word: /withdraw(s|n|al)?/, instead: 'revoke', stillIn: ['native/test/verbs'] },
  { word: /text room/, instead: 'encode scratch buffer' },
  { word: /whole message/, instead: 'reassembled message' },
  { word: /crowds?/, instead: 'overload' },
  { word: /appointments?/, instead: 'retry-after' },
  { word: /strikes?/, instead: 'consecutive errors' },
  { word: /pardon(s|ed)?/, instead: 'reset' },
  { word: /turn(s|ed)? away/, instead: 'reject' },
  { word: /goodbyes?/, instead: 'the name of the frame' },
  { word: /somebody|whoever/, instead: 'the noun: peer, caller, thread' },
  { word: /so (many|much)/, instead: '"this number of", or the figure' },
  { word: /but for/, instead: 'except' },
  // RDMA guests are the virtual machines of test/rdma-vm.
  {
    word: /guests?/,
    instead: 'incoming connection',
    stillIn: [
      'bench',
      'native/test/verbs',
      'scripts',
      'test/rdma',
      'test/runtime',
      'test/scripts',
      'test/slow',
    ],
  },
  // `strangers` is the name of a set of tests about sockets, and of an option of the command-line tool.
  {
    word: /strangers?/,
    instead: 'unauthenticated peer',
    stillIn: ['cli', 'scripts', 'test/planted', 'test/rdma', 'test/runtime'],
  },
  // "Pieces" of advice are allowed, and so is a message of the generator's tests.
  {
    word: /pieces?/,
    instead: 'gather entry, segment',
    stillIn: ['cli', 'test/cli', 'test/codec', 'test/codegen'],
  },
];

/** Splits names into words: `kBurstMax` and `burst_max` both contain the word "burst". */
function wordsOf(text: string): string {
  return text
    .replaceAll('_', ' ')
    .replaceAll(/\bk(?=[A-Z])/g, '')
    .replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, ' ')
    .replaceAll(/\s+(?:\/\/[/<]*|\*)?\s*/g, ' ')
    .toLowerCase();
}

const files = projectFiles();
const sources = files.filter((file) => /\.(ts|mjs|h|cc|cmake)$/.test(file) && !file.endsWith('.rdma.ts'));

describe('a word that has been retired is in none of the rewritten folders', () => {
  const texts = new Map(
    REWRITTEN.map((folder) => [
      folder,
      sources.filter((file) => file.startsWith(`${folder}/`)).map((file) => [file, wordsOf(read(file))]),
    ]),
  );

  test.each(RETIRED)('$word: $instead', ({ word, stillIn = [] }) => {
    const whole = new RegExp(`\\b(?:${word.source})\\b`);
    const uses = REWRITTEN.filter((folder) => !stillIn.includes(folder)).flatMap((folder) =>
      texts.get(folder)!.flatMap(([file, text]) => (whole.test(text!) ? [file] : [])),
    );
    expect(uses).toEqual([]);
  });

  test.each(RETIRED)('$word: the exceptions use it', ({ word, stillIn = [] }) => {
    const whole = new RegExp(`\\b(?:${word.source})\\b`);
    const unused = stillIn.filter((folder) => !texts.get(folder)!.some(([, text]) => whole.test(text!)));
    expect(unused, 'folders to be deleted from stillIn').toEqual([]);
  });

  test('every rewritten folder exists', () => {
    expect(REWRITTEN.filter((folder) => texts.get(folder)!.length === 0)).toEqual([]);
  });

  test('a word in a name or across lines is found', () => {
    expect(wordsOf('kBurstMax burstMax burst_max_')).toBe('burst max burst max burst max ');
    expect(wordsOf('that is turned\n   * away')).toBe('that is turned away');
    expect(wordsOf('so\n  /// many')).toBe('so many');
  });
});

/**
 * Names of classes that both sides of a stream have, or of classes with which a test replaces those of the
 * runtime.
 */
const SAME_NAME = ['Pauses', 'Pulls', 'Pushes'];

test('no two classes that TypeScript files export have the same name, except those that are listed', () => {
  const names = sources
    // The cases of migrate contain programs as texts.
    .filter((file) => file.endsWith('.ts') && !file.startsWith('test/cli/migrate/'))
    .flatMap((file) =>
      [...read(file).matchAll(/^export (?:default )?(?:abstract )?class (\w+)/gm)].map(([, name]) => name!),
    );
  const twice = new Set(names.filter((name, at) => names.indexOf(name) !== at));
  expect([...twice].sort()).toEqual(SAME_NAME);
});
