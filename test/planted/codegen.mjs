/** Bugs of codegen/, for main.mjs; as runtime.mjs has them. The test must generate what it looks at: generated code of the project is that of the sources as they are. */
export const codegenBugs = [
  {
    name: 'an entry of a map without a key has no key of an int64',
    file: 'map.ts',
    from: `form.type === 'bigint' ? "'0'"`,
    to: `form.type === 'bigint' ? "''"`,
    caughtBy: ['test/codegen/map-entries.test.ts', 'no key'],
  },
];
