/** Bugs of runtime/server, reverse, services, telemetry and workers, for main.mjs; as runtime.mjs has them. */
export const serverBugs = [
  {
    name: 'what an identity owes is forgotten when its last connection closes',
    file: 'quotas.ts',
    from: ' ?? this.#closed.get(identity)',
    to: '',
    caughtBy: ['test/security/quotas.test.ts', 'to come anew, 0 ms later, pays nothing off'],
  },
  {
    name: 'a quota is saved up while a client is idle',
    file: 'token-bucket.ts',
    from: 'this.#left = Math.min(this.#perSecond, this.#left + more);',
    to: 'this.#left += more;',
    caughtBy: ['test/security/quotas.test.ts', 'saves nothing up while it is not used'],
  },
  {
    name: 'a handler is begun although its call ended while authorize was thinking',
    file: 'authorize.ts',
    from: '        if (call.aborted !== undefined) throw call.aborted;\n',
    to: '',
    caughtBy: [
      'test/security/access.test.ts',
      'that answers late: the handler does not run when its caller has given it up',
    ],
  },
  {
    name: 'a watcher of health misses a change that comes while it is busy with the last one',
    file: 'health-service.ts',
    from: "if ((this.statusOf(service) ?? 'SERVICE_UNKNOWN') === last) await",
    to: 'await',
    caughtBy: [
      'test/services/health.test.ts',
      'a change that comes while its reader is busy with the last one is told',
    ],
  },
  {
    name: 'what the other thread wrote before it closed is lost',
    file: 'port-duplex.ts',
    from: `      if (!this.#ended || this.readableEnded) this.destroy();
      else this.once('end', () => this.destroy());`,
    to: '      this.destroy();',
    caughtBy: [
      'test/runtime/port-duplex.test.ts',
      'what was written before the other side was destroyed is read, even when that begins afterwards',
    ],
  },
];
