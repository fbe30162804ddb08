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
    caughtBy: ['test/security/binding-keys.test.ts', 'are those of WIRE.md: the proof of an attach frame'],
  },
  {
    name: 'a handshake that leaves the line still gets a place, which nobody gives back',
    file: 'places.ts',
    from: '  leave(one: T): void {\n    this.#waiting.delete(one);\n',
    to: '  leave(one: T): void {\n',
    caughtBy: ['test/control/places.test.ts', 'are given in order, as they come free'],
  },
  {
    name: 'of those who have stalled the longest goes first, however far it has got',
    file: 'places.ts',
    from: 'if (steps > fewest || (steps === fewest && ms <= oneMs)) continue;',
    to: 'if (ms <= oneMs) continue;',
    caughtBy: [
      'test/control/places.test.ts',
      'are taken from those who have got least far, however long others have been waited for',
    ],
  },
  {
    name: 'what takes a client several round trips has the time of one',
    file: 'link.ts',
    from: '    this.#roundTrips = roundTrips;',
    to: '    this.#roundTrips = 1;',
    caughtBy: [
      'test/control/places.test.ts',
      'is waited for by the round trips of its next message, and counts each step',
    ],
  },
  {
    name: 'only the first crowd of silent connections is sent away',
    file: 'silent.ts',
    from: '  #trim(): void {\n    this.#timer = undefined;\n',
    to: '  #trim(): void {\n',
    caughtBy: ['test/control/places.test.ts', 'are sent away the second time, too, when a crowd comes later'],
  },
];
