/**
 * Lists bugs of runtime/client, boundary, stream and codec, for main.mjs. `file` is a file name without its
 * folder. The name stands for the one file of this name that contains the text. `caughtBy` names a test file
 * and the title of the test.
 */
export const runtimeBugs = [
  {
    name: "calls of a session that the server has ended do not wait for the server's reason",
    file: 'last-words.ts',
    from: '    this.#waiting = words !== undefined;',
    to: '    this.#waiting = false;',
    caughtBy: [
      'test/client/last-words.test.ts',
      'waits for the reason that the server sends, and keeps the order of events',
    ],
  },
  {
    name: 'the buffers of a message are lost when the stack overflows during its submission',
    file: 'bulk.ts',
    from: '      this.#unsettled[this.#unsettled.length] = bulk;',
    to: '      this.#unsettled.length = 0;',
    caughtBy: [
      'test/client/client-bulk.test.ts',
      'calls count as in flight although the stack reached its end right after their submission',
    ],
  },
  {
    name: 'a call with `waitForReady` is repeated only once',
    file: 'channel-queue.ts',
    from: '(extras.retried && !waits) ||',
    to: 'extras.retried ||',
    caughtBy: [
      'test/channel/turned-away.test.ts',
      'makes the client repeat a call with `waitForReady` each time, with a pause from the second time on',
    ],
  },
  {
    name: 'a lease that is released twice gives its memory back twice',
    file: 'lease.ts',
    from: `  release(): void {
    if (this.#released) return;
`,
    to: '  release(): void {\n',
    caughtBy: [
      'test/client/client-bulk.test.ts',
      'a response in a block: large fields are views, its lease returns the block',
    ],
  },
  {
    name: 'the remaining time is sent to the server in milliseconds',
    file: 'deadlines.ts',
    from: 'Math.max(1, (deadlineMs - deadlines.now) * 1000)',
    to: 'Math.max(1, deadlineMs - deadlines.now)',
    caughtBy: [
      'test/client/client-session.test.ts',
      'is staged with its method, encoded message and time limit',
    ],
  },
  {
    name: 'a deadline may fire a tick before its time',
    file: 'timer-wheel.ts',
    from: 'this.#link(id, Math.ceil(deadlineMs / wheelTickMs) + 1);',
    to: 'this.#link(id, Math.floor(deadlineMs / wheelTickMs));',
    caughtBy: ['test/boundary/timer-wheel.test.ts', 'any mix keeps the promise (property)'],
  },
  {
    name: 'the send slot of a message that cannot be encoded is lost',
    file: 'outgoing.ts',
    from: 'if (messageBytes < 0 || slab.full',
    to: 'if (slab.full',
    caughtBy: [
      'test/client/client-session.test.ts',
      'that cannot be encoded is rejected with processed: no and leaves every slot free',
    ],
  },
  {
    name: 'a waiting call stays in its queue when its signal aborts it',
    file: 'wait-queue.ts',
    from: `    this.remove(entry);
    entry.fail(error);`,
    to: '    entry.fail(error);',
    caughtBy: ['test/client/waiting-calls.test.ts', 'a cancelled call leaves the queue, and the others stay'],
  },
  {
    name: 'the listener on a signal stays after the last call',
    file: 'abort-listeners.ts',
    from: "  signal.removeEventListener('abort', listener);\n",
    to: '',
    caughtBy: [
      'test/client/abort-listeners.test.ts',
      'that are answered leave no listener, and other calls can still be cancelled',
    ],
  },
  {
    name: 'metadata of the client overrides that of the call',
    file: 'client-defaults.ts',
    from: 'for (const [key] of own) result.delete(key);',
    to: 'for (const [key] of own) if (result.has(key)) own.delete(key);',
    caughtBy: ['test/channel/repeats.test.ts', 'metadata: the keys of a call replace those of the client'],
  },
  {
    name: 'a call that may have been sent is repeated although it is not idempotent',
    file: 'retry.ts',
    from: "return call.idempotent || error.processed === 'no';",
    to: "return call.idempotent || error.processed !== 'yes';",
    caughtBy: [
      'test/channel/repeat-rules.test.ts',
      'a call that may have been sent is made again only when it is idempotent',
    ],
  },
  {
    name: 'hedging makes one attempt more than the policy allows',
    file: 'hedging.ts',
    from: 'if (begun < policy.attemptsMax && budget.allows)',
    to: 'if (begun <= policy.attemptsMax && budget.allows)',
    caughtBy: ['test/channel/repeats.test.ts', 'fails with the last error when all attempts fail'],
  },
  {
    name: 'large answers of attempts that lost are released by garbage collection only',
    file: 'hedging.ts',
    from: '          leaseOf(response as object)?.release();\n',
    to: '',
    caughtBy: [
      'test/channel/repeat-rules.test.ts',
      'large answers of losing attempts are released, and the answer of the winner is not',
    ],
  },
  {
    name: 'the budget for retries allows one failure more',
    file: 'retry-budget.ts',
    from: 'return this.#tokens > this.#max / 2;',
    to: 'return this.#tokens >= this.#max / 2;',
    caughtBy: ['test/channel/repeat-rules.test.ts', 'the budget never exceeds its initial value'],
  },
  {
    name: 'a part of a stream that found no send slot loses its position',
    file: 'client-streams.ts',
    from: '        if (!first) ++this.#spare;\n',
    to: '',
    caughtBy: [
      'test/stream/client-stream.test.ts',
      'a part that repeatedly finds no send slot does not use up the call slots',
    ],
  },
  {
    name: 'an empty part of a stream returns no credit',
    file: 'stream-reader.ts',
    from: `        return true;
      }
      this.#consumed(part);
    }
    return false;`,
    to: `        return true;
      }
      --this.unread;
    }
    return false;`,
    caughtBy: ['test/stream/reader-writer.test.ts', 'reports a part when its last message has been read'],
  },
  {
    name: 'packed messages have lengths of one byte',
    file: 'stream-writer.ts',
    from: '    this.#pack[at - 1] = (end - at) >>> 8;\n',
    to: '    this.#pack[at - 1] = 0;\n',
    caughtBy: ['test/stream/reader-writer.test.ts', 'packs messages of more than 255 bytes'],
  },
  {
    name: 'a varint of eleven bytes is accepted',
    file: 'read.ts',
    from: 'if (shift > 31) return tooWide(source, at);',
    to: 'if (shift > 38) return tooWide(source, at);',
    caughtBy: ['test/codec/wire.test.ts', 'a varint of eleven bytes'],
  },
  {
    name: 'a length that needs three bytes is said to need two',
    file: 'write.ts',
    from: 'value < 0x4000 ? 2',
    to: 'value <= 0x4000 ? 2',
    caughtBy: ['test/codec/gather.test.ts', 'a payload of 16384 bytes, alone, nested and between others'],
  },
  {
    name: 'a text beyond ASCII is measured by its characters',
    file: 'room.ts',
    from: 'text.length < measuredChars ? text.length * 3 : Buffer.byteLength(text)',
    to: 'text.length < measuredChars ? text.length * 3 : text.length',
    caughtBy: [
      'test/codec/room.test.ts',
      'a message too large for the shared memory of encode() has the same encoding',
    ],
  },
  {
    name: 'the last connected address may be removed',
    file: 'connections.ts',
    from: 'connected - ejected < 2',
    to: 'connected - ejected < 1',
    caughtBy: [
      'test/channel/outliers.test.ts',
      'never leaves out the last connected address, whatever it answers',
    ],
  },
  {
    name: 'after a long event-loop iteration, an entry that was removed in it returns to the wheel',
    file: 'timer-wheel.ts',
    from: 'this.#turnAdded[id] !== this.turn || this.#owner[id] === undefined',
    to: 'this.#turnAdded[id] !== this.turn',
    caughtBy: [
      'test/boundary/timer-wheel.test.ts',
      'the last one removed in it: the others fire once each, in their time',
    ],
  },
  {
    name: 'a part of a stream that is one beyond the window is accepted as the next one',
    file: 'stream-reader.ts',
    from: '(sequence - this.#next) >>> 0 >= streamParts',
    to: '(sequence - this.#next) >>> 0 > streamParts',
    caughtBy: ['test/stream/window.test.ts', 'a part from too far ahead, with 1 read'],
  },
  {
    name: 'a retry policy is read again after it was checked',
    file: 'repeat.ts',
    from: 'return { ...retryDefaults, ...checkedPolicy(',
    to: 'return { ...retryDefaults, ...given, ...false && checkedPolicy(',
    caughtBy: [
      'test/channel/repeat-rules.test.ts',
      'a policy is read once, and an undefined value means the default',
    ],
  },
  {
    name: 'freed memory makes all waiting calls try again',
    file: 'resource-queue.ts',
    from: "      if (found === 'nothing') break;\n",
    to: '',
    caughtBy: [
      'test/boundary/resource-queue.test.ts',
      'causes one attempt more than the number of calls that fit, however many wait',
    ],
  },
  {
    name: 'the requests of a stream are closed in the context of the code that ends it',
    file: 'producer.ts',
    from: 'iterator.return && this.#scope.run(iterator.return as () => unknown, iterator)',
    to: 'iterator.return?.()',
    caughtBy: [
      'test/runtime/async-context.test.ts',
      'the end of the requests of a stream, which the server has brought',
    ],
  },
  {
    name: 'a busy channel keeps the AsyncLocalStorage store of its first call',
    file: 'keep-alive.ts',
    from: 'inRoot(() => setInterval(look, keepAliveCheckMs))',
    to: 'setInterval(look, keepAliveCheckMs)',
    caughtBy: ['test/runtime/async-context.test.ts', 'though others keep its channel busy all the time'],
  },
  {
    name: 'a store is entered to find out how the runtime keeps stores, which makes V8 run every promise with hooks',
    file: 'scopes.ts',
    from: "  if (Reflect.has(storage, 'kResourceStore')) return true;\n  if (Object.getOwnPropertySymbols(scope).some(isFrame)) return false;\n",
    to: '',
    caughtBy: [
      'test/core/scopes.test.ts',
      'inRoot() enters no store, because Node 20 and 22 would then run every promise of the process with hooks',
    ],
  },
  {
    name: 'Jest reports the scope of a call as an open handle',
    file: 'scopes.ts',
    from: '  hasRef(): boolean {\n    return false;\n  }\n',
    to: '',
    caughtBy: [
      'test/runtime/open-handles.test.ts',
      'every resource that calls, streams and handlers make says that it keeps nothing alive',
    ],
  },
  {
    name: 'the transcoder of Node is offered three bytes for each character',
    file: 'text.ts',
    from: 'utf8Write.call(bytes, text, at, bytes.length - at)',
    to: 'utf8Write.call(bytes, text, at, text.length * 3)',
    caughtBy: ['test/codec/text-sizes.test.ts', "Node's transcoder never gets more room than the memory has"],
  },
  {
    name: 'a repeated call waits for an event of another, idle connection',
    file: 'connections.ts',
    from: '    else this.queue.pumpAfter(this.current.connection.context);\n',
    to: '',
    caughtBy: [
      'test/channel/turned-away.test.ts',
      'makes the client repeat the call on another idle connection of the channel',
    ],
  },
];
