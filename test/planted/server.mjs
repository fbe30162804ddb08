/**
 * Lists bugs of runtime/server, reverse, services, telemetry and workers for main.mjs, in the form of
 * runtime.mjs.
 */
export const serverBugs = [
  {
    name: 'the used quota of an identity is forgotten when its last connection closes',
    file: 'quotas.ts',
    from: ' ?? this.#closed.get(identity)',
    to: '',
    caughtBy: ['test/security/quotas.test.ts', 'of a client that reconnects 0 ms later keep their debt'],
  },
  {
    name: 'an idle client accumulates quota',
    file: 'token-bucket.ts',
    from: 'this.#left = Math.min(this.#perSecond, this.#left + more);',
    to: 'this.#left += more;',
    caughtBy: ['test/security/quotas.test.ts', 'saves no more than that while it is not used'],
  },
  {
    name: 'a handler starts although its call ended while `authorize` was running',
    file: 'authorize.ts',
    from: '        if (call.aborted !== undefined) throw call.aborted;\n',
    to: '',
    caughtBy: [
      'test/security/access.test.ts',
      'that answers late: the handler does not run when its caller has given it up',
    ],
  },
  {
    name: 'a health watcher misses a change that occurs while it handles the last one',
    file: 'health-service.ts',
    from: "if ((this.statusOf(service) ?? 'SERVICE_UNKNOWN') === last) await",
    to: 'await',
    caughtBy: [
      'test/services/health.test.ts',
      'reports a change that occurs while its reader handles the previous one',
    ],
  },
  {
    name: 'bytes that the other thread wrote before it closed are lost',
    file: 'port-duplex.ts',
    from: `      if (!this.#ended || this.readableEnded) this.destroy();
      else this.once('end', () => this.destroy());`,
    to: '      this.destroy();',
    caughtBy: [
      'test/server/port-duplex.test.ts',
      'bytes written before the other side was destroyed are read, even when reading begins afterwards',
    ],
  },
  {
    name: 'a connection that closes removes the others of its address from the count',
    file: 'peer-counts.ts',
    from: 'if (known?.delete(duplex) === true && known.size === 0) this',
    to: 'if (known?.delete(duplex) === true) this',
    caughtBy: [
      'test/server/peer-counts.test.ts',
      'a connection that closes makes room for one, and the others still count',
    ],
  },
  {
    name: 'a client that reconnects with another quota loses its used quota',
    file: 'quotas.ts',
    from: 'if (bucket === undefined) return',
    to: 'if (bucket === undefined || bucket.perSecond !== perSecond) return',
    caughtBy: [
      'test/security/quotas.test.ts',
      'a client that reconnects with another quota still owes its earlier use',
    ],
  },
  {
    name: 'a stream that its reader leaves after its end is counted twice',
    file: 'observed-call.ts',
    from: '    if (this.#over) return;\n',
    to: '',
    caughtBy: ['test/telemetry/observed-call.test.ts', 'a stream that is read to its end and left ends once'],
  },
  {
    name: 'the counters of a process are added to those of the scrape before',
    file: 'prometheus.ts',
    from: '    all = Object.fromEntries(names.map((name) => [name, 0])) as unknown as Stats;\n',
    to: '',
    caughtBy: [
      'test/telemetry/prometheus.test.ts',
      'native counters of a process by its number are current, however often they are read',
    ],
  },
  {
    name: 'a restarted worker loses the connections that were offered to it before',
    file: 'unplaced.ts',
    from: '    for (const one of asked?.waiting ?? []) one.asked.delete(place);\n',
    to: '',
    caughtBy: [
      'test/server/unplaced.test.ts',
      'a worker that ends and is started again gets the connections offered to it before',
    ],
  },
  {
    name: 'a connection ends with the last call of its client, although its server still calls',
    file: 'client-link.ts',
    from: ' && this.#serving === undefined) this.close(',
    to: ') this.close(',
    caughtBy: [
      'test/reverse/second-session.test.ts',
      'by shutdown waits for calls in progress of both directions',
    ],
  },
  {
    name: 'a connection whose client waits for calls counts as idle',
    file: 'server-connection.ts',
    from: ' || this.#calls?.open === true || ',
    to: ' || ',
    caughtBy: ['test/reverse/second-session.test.ts', 'an idle connection stays while its client serves'],
  },
  {
    name: 'a client that may not call anything may still serve',
    file: 'calling.ts',
    from: 'const later = this.#owner.authorize(this.#connection);',
    to: 'const later = undefined as Promise<void> | undefined;',
    caughtBy: [
      'test/reverse/second-session.test.ts',
      'not clients that are denied by a table without it (option authorize)',
    ],
  },
  {
    name: 'the session of the other direction is sealed with the keys of the first one',
    file: 'binding.ts',
    from: "this.#attempt('reverse', number, fabric)",
    to: "this.#attempt('attempt', number, fabric)",
    caughtBy: [
      'test/security/binding-keys.test.ts',
      'are those of the wire page: the first key of sealing of the session that it is for',
    ],
  },
  {
    name: "a handler's stream is closed without the stores that interceptors have entered",
    file: 'scopes.ts',
    from: ': scope.run(iterator.return, iterator, value)',
    to: ': iterator.return(value)',
    caughtBy: [
      'test/runtime/async-context.test.ts',
      'a store entered by an interceptor of the server is current when the caller of a stream leaves it early',
    ],
  },
  {
    name: 'onWorkerError sees the store of the code that started the group',
    file: 'worker-group.ts',
    from: 'promiseOf(inRoot(() => onError(error)))',
    to: 'promiseOf(onError(error))',
    caughtBy: [
      'test/runtime/process/worker-errors.test.ts',
      'onWorkerError sees no store of the code that started the group',
    ],
  },
  {
    name: 'an onWorkerError that rejects ends the process',
    file: 'worker-group.ts',
    from: 'promiseOf(inRoot(() => onError(error)))?.catch(failed);',
    to: 'promiseOf(inRoot(() => onError(error)));',
    caughtBy: [
      'test/runtime/process/worker-group.test.ts',
      'an onWorkerError that rejects does not end the process',
    ],
  },
  {
    name: 'listeners for all clients see the store of the caller that shuts the server down',
    file: 'peers.ts',
    from: 'inRoot(this.emit, this, event, peer);',
    to: 'this.emit(event, peer);',
    caughtBy: [
      'test/runtime/async-context-shared.test.ts',
      'functions around calls of a server to its clients',
    ],
  },
  {
    name: 'callbacks of a call over grpc-js run where its connection was made',
    file: 'client-call.ts',
    from: 'this.#scope.run(callback, undefined, metadata);',
    to: 'callback(metadata);',
    caughtBy: [
      'test/runtime/async-context-shared.test.ts',
      "functions of a call over grpc-js run in its caller's context, even over another caller's connection",
    ],
  },
];
