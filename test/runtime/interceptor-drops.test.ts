/**
 * Interceptors call `next` and drop its promise. However the call ends, only code that awaited that promise
 * learns of the end.
 */
import {
  createClient,
  type Interceptor,
  RpcError,
  type RpcRequest,
  type RpcResponse,
  Status,
} from 'rdma-rpc';
import { type Peers, peersOf, serveReverse } from 'rdma-rpc/reverse';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { tried } from '../extent.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { collect } from '../stream/stream-world.ts';
import { openPair, pairWays } from './pair.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));
const unheard: unknown[] = [];
const hear = (fault: unknown) => unheard.push(fault);
beforeEach(() => {
  unheard.length = 0;
  process.on('unhandledRejection', hear);
});
afterEach(() => {
  process.off('unhandledRejection', hear);
});

/** Returns an answer of the interceptor that equals the answer of `next`. */
function answer(request: RpcRequest): RpcResponse {
  const { service, method, metadata: header } = request;
  const trailer = header;
  if (!request.stream) return { stream: false, service, method, message: {}, header, trailer };
  async function* messages() {
    yield {};
  }
  return { stream: true, service, method, message: messages(), header, trailer };
}

const after: Readonly<Record<string, (request: RpcRequest) => unknown>> = {
  throws: () => {
    throw new RpcError(Status.ABORTED, 'mine');
  },
  rejects: () => Promise.reject(new RpcError(Status.ABORTED, 'mine')),
  'answers itself': (request) => Promise.resolve(answer(request)),
  'answers itself, later': async (request) => {
    await turn();
    return answer(request);
  },
  'never answers': () => new Promise(() => undefined),
  'calls it once more': () => undefined,
};
const kinds = ['unary', 'count', 'sum', 'echo'] as const;

const dropping =
  (then: string): Interceptor =>
  (next) =>
  (request) => {
    void next(request);
    if (then === 'calls it once more') return next(request);
    return after[then]!(request) as ReturnType<typeof next>;
  };
const failing: Interceptor = () => async () => {
  throw new RpcError(Status.DATA_LOSS, 'within');
};
const throwing: Interceptor = () => () => {
  throw new RpcError(Status.DATA_LOSS, 'within');
};
const passing: Interceptor = (next) => (request) => next(request);

const places: Readonly<Record<string, (then: string) => { client?: Interceptor[]; server?: Interceptor[] }>> =
  {
    client: (then) => ({ client: [dropping(then)] }),
    'client, around one that fails': (then) => ({ client: [dropping(then), failing] }),
    'client, around one that throws': (then) => ({ client: [passing, dropping(then), throwing] }),
    server: (then) => ({ server: [dropping(then)] }),
    'server, around one that fails': (then) => ({ server: [passing, dropping(then), failing] }),
  };
const cases = pairWays.flatMap((way) => Object.keys(places).map((place) => [way, place] as const));

describe.each(cases)('over %s, %s', (way, place) => {
  const row = cases.findIndex((each) => each[0] === way && each[1] === place);
  const all = Object.keys(after).flatMap((then) => kinds.map((kind) => [then, kind] as const));
  test.each(all.filter((_, column) => tried(row, column)))('%s: %s', async (then, kind) => {
    const { client: outer = [], server: inner = [] } = places[place]!(then);
    const fails = () => {
      throw new RpcError(Status.FAILED_PRECONDITION, 'no');
    };
    let peers: Peers | undefined;
    const pair = await openPair(
      way,
      (server) => {
        peers = peersOf(server);
        return server
          .scope(...inner)
          .add(StreamsDefinition, { unary: fails, count: fails, sum: fails, echo: fails });
      },
      { onHandlerError: () => undefined },
    );
    const client = createClient(StreamsDefinition, pair.channel, { '*': { interceptors: outer } });
    const options = { timeoutMs: then === 'never answers' ? 20 : 5000 };
    const call = {
      unary: () => client.unary({}, options),
      count: () => collect(client.count({}, options)),
      sum: () => client.sum([{}], options),
      echo: () => collect(client.echo([{}], options)),
    }[kind];
    await call().catch(() => undefined);
    if (kind === 'unary') {
      const reverse = serveReverse(pair.channel, { interceptors: inner, onHandlerError: () => undefined });
      reverse.add(StreamsDefinition, { unary: fails });
      await reverse.ready;
      while (peers!.all.length === 0) await turn();
      const back = peers!.client(StreamsDefinition, peers!.all[0]!, { interceptors: outer });
      await back.unary({}, options).catch(() => undefined);
      await reverse.close();
    }
    await pair.close();
    await turn();
    expect(unheard).toEqual([]);
  });
});
