/**
 * Application code begins calls in the batch of events that ends their session: before the end event, while
 * the session's calls are notified, and after the end event. Native code has ended the session before, so
 * each call must use another connection. test/states starts calls at other moments, at random.
 */
import { type CallOptions, type Client, createClient } from 'rdma-rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { acquireContext, releaseContext } from '../../runtime/boundary/contexts.ts';
import type { FabricContext } from '../../runtime/boundary/fabric-context.ts';
import { ClientSession } from '../../runtime/client/session/client-session.ts';
import { type ItemInit, StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { collect, openStreams, type StreamWorld } from '../stream/stream-world.ts';
import { caught, turn } from './bed.ts';

/** After this number of event-loop iterations, everything that this test starts has long happened. */
const turnsMax = 5000;
async function until(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); ++turns) {
    if (turns > turnsMax) throw new Error('it never comes');
    await turn();
  }
}

let context: FabricContext;
let world: StreamWorld;
let client: Client<typeof StreamsDefinition>;
/** The client's sessions, in the order in which they were connected. */
let sessions: ClientSession[];
/** These functions run before and after the event that ends the first of the sessions. */
let before: () => void;
let behind: () => void;

beforeEach(async () => {
  context = acquireContext({ fabric: 'sim' });
  sessions = [];
  before = behind = () => undefined;
  const { attach } = context.sessions;
  context.sessions.attach = (owner) => {
    attach.call(context.sessions, owner);
    if (!(owner instanceof ClientSession) || sessions.push(owner) > 1) return;
    const { onDown } = owner;
    owner.onDown = (reason) => {
      onDown.call(owner, reason);
      behind();
    };
  };
  const { native } = context;
  const sessionError = native.sessionError.bind(native);
  // This function is called last before the session is notified of its end.
  const value = (session: number): string => {
    if (session === sessions[0]?.target.session && context.sessions.has(session)) before();
    return sessionError(session);
  };
  Object.defineProperty(native, 'sessionError', { value, configurable: true });
  world = await openStreams('in process');
  await world.channel.ready();
  client = createClient(StreamsDefinition, world.channel);
});

afterEach(async () => {
  await world.close();
  Reflect.deleteProperty(context.sessions, 'attach');
  Reflect.deleteProperty(context.native, 'sessionError');
  releaseContext(context);
});

/**
 * Returns an iterable of requests that never yields one. `onLeft` is called when the stream of the requests
 * ends.
 */
function endless(onLeft: () => void): AsyncIterable<ItemInit> {
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise<never>(() => undefined),
      return: () => {
        onLeft();
        return Promise.resolve({ done: true, value: undefined });
      },
    }),
  };
}

async function openStreamThat(onLeft: () => void): Promise<void> {
  void caught(client.hold(endless(onLeft)));
  await until(() => sessions[0]!.inFlight === 1);
}

type Begin = () => void;
/** Arranges that `begin` is called at each of these moments. */
const places: Readonly<Record<string, (begin: Begin) => Promise<void> | void>> = {
  'in an event before the end': (begin) => {
    before = begin;
  },
  'in an event behind the end': (begin) => {
    behind = begin;
  },
  'where a stream that was open fails': (begin) => openStreamThat(begin),
  'where a stream of the same batch fails': (begin) => {
    before = () => {
      before = () => undefined;
      void caught(client.hold(endless(begin)));
    };
  },
};

const items = [{ number: 1 }, { number: 2 }];
const kinds: Readonly<Record<string, (options: CallOptions) => Promise<unknown>>> = {
  unary: (options) => client.unary({ count: 7 }, options),
  'one-way': (options) => client.note({ text: 'here' }, options),
  'server stream': (options) => collect(client.count({ count: 3 }, options)),
  'client stream': (options) => client.sum(items, options),
  bidirectional: (options) => collect(client.echo(items, options)),
};

describe.each(Object.keys(places))('a call that begins %s', (place) => {
  test.each(
    Object.keys(kinds).flatMap(
      (kind) =>
        [
          [kind, 'no limit', {}],
          [kind, 'a time limit', { timeoutMs: 60_000 }],
        ] as const,
    ),
  )('%s, with %s', async (kind, _, options) => {
    let call: Promise<unknown> | undefined;
    let refused = false;
    await places[place]!(() => {
      call ??= kinds[kind]!(options).catch((error: unknown) => {
        // A request stream of which the first element has been read cannot be sent again. No request has been
        // taken yet.
        expect(error).toMatchObject({ processed: 'no' });
        refused = true;
      });
    });
    context.sessions.close(sessions[0]!.target.session, 'lost by the test');
    let over = false;
    await until(() => call !== undefined);
    void call!.finally(() => {
      over = true;
    });
    await until(() => over);
    await call;
    if (refused) expect(['client stream', 'bidirectional']).toContain(kind);
    expect(sessions).toHaveLength(refused ? 1 : 2);
    expect(sessions.map(({ inFlight }) => inFlight).filter((count) => count !== 0)).toEqual([]);
  });
});
