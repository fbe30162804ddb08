/** Lists bugs of runtime/control for main.mjs, in the form of runtime.mjs. */
export const controlBugs = [
  {
    name: 'a fabric is offered even if the client has another version of it',
    file: 'offered-fabrics.ts',
    from: ' || otherFabricVersion(name, version)',
    to: '',
    caughtBy: ['test/control/versions.test.ts', 'the client says so: with auto they meet on tcp'],
  },
  {
    name: 'other fields of a hello are checked before its wire version',
    file: 'link.ts',
    from: '  if (other !== undefined) return other;\n',
    to: '',
    caughtBy: [
      'test/control/versions.test.ts',
      'a client of newer ones only: calls are not run, and fail with both versions',
    ],
  },
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
    name: 'the transcript of a channel binding covers the hello but not the welcome',
    file: 'binding.ts',
    from: 'update(joined(opening)).digest()',
    to: 'update(joined(opening.slice(0, 1))).digest()',
    caughtBy: [
      'test/security/binding-keys.test.ts',
      'are those of the wire page: the proof of an attach frame',
    ],
  },
  {
    name: 'a handshake that leaves the queue still gets a slot of the limiter, which is never returned',
    file: 'handshake-limiter.ts',
    from: '    this.#waiting.delete(one);\n',
    to: '',
    caughtBy: ['test/control/handshake-limiter.test.ts', 'are given in order, as they become free'],
  },
  {
    name: 'the longest stalled handshake is evicted, even if it has advanced furthest',
    file: 'handshake-limiter.ts',
    from: 'steps(a) - steps(b) || b.ms - a.ms',
    to: 'b.ms - a.ms',
    caughtBy: [
      'test/control/handshake-limiter.test.ts',
      'evict the least advanced handshakes, however long others have been silent',
    ],
  },
  {
    name: 'a new client waits behind unauthenticated peers that connect again and again',
    file: 'handshakes.ts',
    from: 'new HandshakeLimiter(handshakesMax, { ...owner, rank })',
    to: 'new HandshakeLimiter(handshakesMax, owner)',
    caughtBy: [
      'test/tcp/far.test.ts',
      'unauthenticated peers that retry from many addresses, up to an attach, keep out no new client',
    ],
  },
  {
    name: 'a server signs for a suspect address as often as it connects',
    file: 'handshakes.ts',
    from: 'return this.#suspectTls.before(link, () => this.enter(link));',
    to: 'return this.enter(link);',
    caughtBy: [
      'test/security/tls-strangers.test.ts',
      'an address whose TLS handshakes fail gets few signatures of a server, and keeps out no other address',
    ],
  },
  {
    name: 'a worker group signs for a suspect address as often as it connects',
    file: 'unidentified-sockets.ts',
    from: 'return this.#suspectTls.before(link, begin);',
    to: 'return begin();',
    caughtBy: [
      'test/security/tls-strangers.test.ts',
      'an address whose TLS handshakes fail gets few signatures of a worker group, and keeps out no other address',
    ],
  },
  {
    name: 'a worker group counts every client that completes TLS as accepted',
    file: 'unidentified-sockets.ts',
    from: 'if (verdictOf(duplex)?.refused !== undefined) this.#suspects.failed(address);\n        else if',
    to: 'if',
    caughtBy: [
      'test/security/tls-strangers.test.ts',
      'a client without a trusted certificate counts as failed at a worker group, too',
    ],
  },
  {
    name: 'unauthenticated peers that retry too early keep their retry times',
    file: 'handshakes.ts',
    from: 'if (this.#suspects.came(address)) this.#limiter.lapse(rank);',
    to: 'this.#suspects.came(address);',
    caughtBy: [
      'test/control/retry-after.test.ts',
      'unauthenticated peers that retry too early lose their retry times to a new client',
    ],
  },
  {
    name: 'a step of several round trips gets the time of one',
    file: 'link.ts',
    from: '    this.#roundTrips = roundTrips;',
    to: '    this.#roundTrips = 1;',
    caughtBy: [
      'test/control/handshake-limiter.test.ts',
      'has the time of the round trips of its next message, and each step counts',
    ],
  },
  {
    name: 'silent connections are evicted in the first overload only',
    file: 'silent.ts',
    from: '  #trim(): void {\n    this.#timer = undefined;\n',
    to: '  #trim(): void {\n',
    caughtBy: ['test/control/handshake-limiter.test.ts', 'are evicted again in a later overload'],
  },
  {
    name: 'a client tries one device alone',
    file: 'rails.ts',
    from: '.slice(0, triesMax)',
    to: '.slice(0, 1)',
    caughtBy: [
      'test/control/rails-order.test.ts',
      'at most four devices are tried, and a server takes an attach for each',
    ],
  },
];
