/**
 * Bugs of codegen/, for main.mjs; as runtime.mjs has them. The test must generate what it looks at: generated
 * code of the project is that of the sources as they are.
 */
export const codegenBugs = [
  {
    name: 'an entry of a map without a key has no key of an int64',
    file: 'map.ts',
    from: `form.type === 'bigint' ? "'0'"`,
    to: `form.type === 'bigint' ? "''"`,
    caughtBy: ['test/codegen/map-entries.test.ts', 'no key'],
  },
  {
    name: 'methods of two services may have the same id',
    file: 'services.ts',
    from: '    const building = this.#building;\n    const keys = keysFor(',
    to: '    const building = this.#building;\n    this.#ids.clear();\n    const keys = keysFor(',
    caughtBy: ['test/codegen/errors.test.ts', 'two methods with the same id, of two services'],
  },
  {
    name: 'an option of somebody else with the number of ours is taken for ours',
    file: 'options.ts',
    from: 'return entry !== undefined && isOurs(entry.field) ? entry.list.at(-1) : undefined;',
    to: 'return entry?.list.at(-1);',
    caughtBy: [
      'test/codegen/codec-option.test.ts',
      "another package's option with the number of ours is not ours",
    ],
  },
  {
    name: 'the codec of a service goes before that of its method',
    file: 'options.ts',
    from: 'codecOf(options, ours.preferredCodec) ?? codecOf(serviceOptions, ours.defaultCodec)',
    to: 'codecOf(serviceOptions, ours.defaultCodec) ?? codecOf(options, ours.preferredCodec)',
    caughtBy: ['test/codegen/codec-option.test.ts', 'the one of a method goes before that of its service'],
  },
  {
    name: 'a range is compared with the one in front of it alone',
    file: 'check-ranges.ts',
    from: 'if (last === undefined || each.range.end > last.range.end) last = each;',
    to: 'last = each;',
    caughtBy: ['test/codegen/errors.test.ts', 'ranges that lie in the same other range'],
  },
];
