/** Bugs of runtime/control, for main.mjs; as runtime.mjs has them. */
export const controlBugs = [
  {
    name: 'the identity that a channel asks for is compared without regard to case',
    file: 'tls-client.ts',
    from: 'identity.includes(found)',
    to: 'identity.some((each) => each.toLowerCase() === found.toLowerCase())',
    caughtBy: [
      'test/security/tls.test.ts',
      'has the identity, but in other letters: identities are compared as they are written',
    ],
  },
  {
    name: 'the transcript of a binding covers the hello and not the welcome',
    file: 'binding.ts',
    from: 'update(joined(opening)).digest()',
    to: 'update(joined(opening.slice(0, 1))).digest()',
    caughtBy: ['test/security/bound.test.ts', 'are those of WIRE.md: the proof of an attach frame'],
  },
];
