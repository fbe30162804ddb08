/**
 * Tests that the stack of a call's error ends in the function that awaits the call, at the line of the
 * `await`, for every kind of call and of failure.
 */
import { createClient, createInProcessChannel, type Interceptor, RpcError, Status } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Channel } from '../../runtime/client/channel-type.ts';
import { Bed } from '../channel/bed.ts';
import { echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { newLog, streamHandlers } from '../stream/streams-service.ts';

let channel: Channel;
beforeEach(() => {
  channel = createInProcessChannel((server) =>
    server
      .add(EchoDefinition, echoHandlers({ started: 0, aborted: [] }))
      .add(StreamsDefinition, streamHandlers(newLog())),
  );
});
afterEach(() => channel.close());

const echo = () => createClient(EchoDefinition, channel);
const streams = () => createClient(StreamsDefinition, channel);

/** Runs one of the functions below, whose last line of code is the line that fails. */
async function errorOf(application: () => Promise<unknown>): Promise<RpcError> {
  try {
    await application();
  } catch (error) {
    if (error instanceof RpcError) return error;
    throw error;
  }
  throw new Error('the call was answered');
}

function expectCaller(error: RpcError, name: string): void {
  const lines = (error.stack ?? '').split('\n');
  expect(lines[0]).toBe(`RpcError: ${error.message}`);
  // The stack contains the test's own function, in this file, with a line and a column.
  expect(lines.find((line) => line.includes(`${name} `))).toMatch(/caller-line\.test\.ts:\d+:\d+\)$/);
}

async function* one(item: object) {
  yield item;
}

const notFound = { text: 'not found' };
async function inOneCall() {
  await echo().behave(notFound);
}
async function inAReturn() {
  return await echo().behave(notFound);
}
async function afterAPause() {
  await new Promise((resolve) => setImmediate(resolve));
  await echo().behave(notFound);
}
async function amongOthers() {
  await Promise.all([echo().echo({}), echo().behave(notFound)]);
}
async function amongAny() {
  await Promise.allSettled([echo().echo({}), echo().behave(notFound)]).then(([, second]) => {
    if (second.status === 'rejected') throw second.reason;
  });
}
async function withFinally() {
  await echo()
    .behave(notFound)
    .finally(() => undefined);
}
async function withDefaults() {
  const client = createClient(EchoDefinition, channel, { '*': { metadata: { a: 'b' } } });
  await client.behave(notFound);
}
async function withInterceptors() {
  const pass: Interceptor = (next) => async (request) => await next(request);
  const many = Array.from({ length: 8 }, () => pass);
  const client = createClient(EchoDefinition, channel, { '*': { interceptors: many } });
  await client.behave(notFound);
}
async function withRetries() {
  const retry = { attemptsMax: 3, backoffMs: 0, codes: [Status.NOT_FOUND] };
  await createClient(EchoDefinition, channel, { behave: { idempotent: true } }).behave(notFound, { retry });
}
async function withHedging() {
  const { methods } = EchoDefinition;
  const options = { idempotencyLevel: 'IDEMPOTENT' } as const;
  const idempotent = {
    ...EchoDefinition,
    methods: { ...methods, behave: { ...methods.behave, name: 'Behave', options } },
  };
  await createClient(idempotent, channel).behave(notFound, { hedging: { delayMs: 1000 } });
}
async function withTimeLimit() {
  await echo().behave({ text: 'hang' }, { timeoutMs: 5 });
}
async function withSignal() {
  await echo().behave({ text: 'hang' }, { signal: AbortSignal.timeout(5) });
}
async function withSignalThatHasFired() {
  await echo().behave({ text: 'hang' }, { signal: AbortSignal.abort() });
}
async function withNoTime() {
  await echo().echo({}, { timeoutMs: 0 });
}
async function withWrongRequest() {
  await echo().echo({ text: 7 as never });
}
async function onClosedChannel() {
  await channel.close();
  await echo().echo({});
}
async function inServerStream() {
  for await (const _ of streams().behave({ count: 3, text: 'not found' }));
}
async function inEmptyServerStream() {
  for await (const _ of streams().behave({ text: 'not found' }));
}
async function inClientStream() {
  await streams().take(one({ text: 'nonsense' }));
}
async function inBidi() {
  for await (const _ of streams().missing(one({})));
}
async function inStreamWithInterceptors() {
  const pass: Interceptor = (next) => async (request) => await next(request);
  const client = createClient(StreamsDefinition, channel, { '*': { interceptors: [pass, pass] } });
  for await (const _ of client.behave({ count: 3, text: 'not found' }));
}
async function inStreamWithTimeLimit() {
  for await (const _ of streams().behave({ text: 'hang' }, { timeoutMs: 5 }));
}
async function inStreamOnClosedChannel() {
  await channel.close();
  for await (const _ of streams().behave({ count: 1 }));
}

test.each([
  inOneCall,
  inAReturn,
  afterAPause,
  amongOthers,
  amongAny,
  withFinally,
  withDefaults,
  withInterceptors,
  withRetries,
  withHedging,
  withTimeLimit,
  withSignal,
  withSignalThatHasFired,
  withNoTime,
  withWrongRequest,
  onClosedChannel,
  inServerStream,
  inEmptyServerStream,
  inClientStream,
  inBidi,
  inStreamWithInterceptors,
  inStreamWithTimeLimit,
  inStreamOnClosedChannel,
])('%o', async (application) => {
  expectCaller(await errorOf(application), application.name);
});

test('with Promise.all the stack shows which of the calls it was', async () => {
  expect((await errorOf(amongOthers)).stack).toContain('at async Promise.all (index 1)');
});

describe('a channel without a server', () => {
  let bed: Bed;
  beforeEach(() => {
    bed = new Bed();
  });
  afterEach(() => bed.close());

  async function whileConnecting() {
    await createClient(EchoDefinition, bed.channel(['a'])).echo({});
  }
  async function inReady() {
    await bed.channel(['a']).ready();
  }
  async function whileFailing() {
    const down = bed.channel(['a'], { backoffMs: 600_000 });
    await down.ready().catch(() => undefined);
    await createClient(EchoDefinition, down).echo({});
  }
  async function withoutAwaiting() {
    const down = bed.channel(['a'], { backoffMs: 600_000 });
    await down.ready().catch(() => undefined);
    await new Promise((_, reject) => createClient(EchoDefinition, down).echo({}).catch(reject));
  }

  test.each([whileConnecting, inReady, whileFailing, withoutAwaiting])('%o', async (application) => {
    expectCaller(await errorOf(application), application.name);
  });
});

test('an error thrown by the requests of a stream keeps its stack', async () => {
  const mine = new RpcError(Status.ABORTED, 'mine');
  const { stack } = mine;
  async function* requests() {
    yield {};
    throw mine;
  }
  const error = await errorOf(() => streams().sum(requests()));
  expect(error).toBe(mine);
  expect(error.stack).toBe(stack);
});

test('Error.stackTraceLimit is not changed, even when it is 0, and errors without a stack are thrown, too', async () => {
  const limit = Error.stackTraceLimit;
  try {
    for (const mine of [0, 3]) {
      Error.stackTraceLimit = mine;
      await errorOf(inOneCall);
      expect(Error.stackTraceLimit).toBe(mine);
    }
  } finally {
    Error.stackTraceLimit = limit;
  }
});
