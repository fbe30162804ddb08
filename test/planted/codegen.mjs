/**
 * Lists bugs of codegen/ for main.mjs, in the form of runtime.mjs. The tests that find these bugs must
 * generate the code that they check, because the project's generated code comes from the unchanged sources.
 */
export const codegenBugs = [
  {
    name: 'a map entry without a key gets an empty int64 key',
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
    name: "another package's option with the number of one of ours is read as ours",
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
    caughtBy: ['test/codegen/codec-option.test.ts', 'the codec of a method overrides that of its service'],
  },
  {
    name: 'a range is compared with the preceding one only',
    file: 'check-ranges.ts',
    from: 'if (last === undefined || each.range.end > last.range.end) last = each;',
    to: 'last = each;',
    caughtBy: ['test/codegen/errors.test.ts', 'ranges that lie in the same other range'],
  },
];
