/**
 * Lists gRPC's interoperability cases with streams, and a few cases that gRPC does not need. unary-cases.ts
 * lists the cases that are left out.
 */
import { leaseOf, type RpcError, Status } from 'rdma-rpc';
import { expect } from 'vitest';
import {
  InputRequest,
  type InputRequestInit,
  OutputRequest,
  type OutputRequestInit,
  OutputResponse,
} from './gen/interop.rdma.ts';
import type { Peer } from './peer.ts';
import { headerKey, trailerKey } from './service.ts';
import { bodyFor, boundaries, isPattern, pattern } from './sizes.ts';
import { type Case, echoes, failure, until } from './unary-cases.ts';

const partHeaderBytes = 12;
const metadataLengthBytes = 8;
/**
 * Messages of a stream are sent behind the header of their part, and small messages also with their length.
 * The limits of such messages are lower by these bytes.
 */
const sizes: readonly number[] = [
  ...boundaries,
  ...boundaries
    .filter((bytes) => bytes < 10_000)
    .map((bytes) => bytes - partHeaderBytes - metadataLengthBytes),
  ...boundaries.filter((bytes) => bytes > 8000 && bytes < 10_000).map((bytes) => bytes - partHeaderBytes - 2),
];

const asked = (...responses: number[]): OutputRequestInit => ({
  responseParameters: responses.map((size) => ({ size })),
});
const input = (bytes: number): InputRequestInit => ({
  payload: { body: pattern(bytes, bytes), seed: bytes },
});

/** Reads a stream to its end, and checks every body. */
async function bodies(stream: AsyncIterable<OutputResponse>): Promise<number[]> {
  const got: number[] = [];
  for await (const response of stream) {
    const { body, seed } = response.payload!;
    expect(isPattern(body, seed)).toBe(true);
    got.push(body.byteLength);
    leaseOf(response)?.release();
  }
  return got;
}

/**
 * Makes a stream of questions for a test that reads the answers: `ask` sends the next question, and `end`
 * half-closes.
 */
function questions() {
  const waiting: OutputRequestInit[] = [];
  let over = false;
  let wake = (): void => undefined;
  async function* all() {
    for (;;) {
      const next = waiting.shift();
      if (next !== undefined) yield next;
      else if (over) return;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  }
  return {
    stream: all(),
    ask(request: OutputRequestInit): void {
      waiting.push(request);
      wake();
    },
    end(): void {
      over = true;
      wake();
    },
  };
}

/** Sends each question after the previous one has been answered. */
async function pingPong({ client }: Peer, exchanges: readonly [request: number, response: number][]) {
  const { stream, ask, end } = questions();
  const question = ([request, response]: [number, number]): OutputRequestInit => ({
    ...asked(response),
    payload: { body: pattern(request, request), seed: request },
  });
  const rest = [...exchanges];
  const next = (): void => {
    const exchange = rest.shift();
    if (exchange === undefined) end();
    else ask(question(exchange));
  };
  next();
  let answers = 0;
  for await (const response of client.fullDuplexCall(stream)) {
    const [request, size] = exchanges[answers++]!;
    expect(response.payload?.body.byteLength).toBe(size);
    expect(isPattern(response.payload!.body, request)).toBe(true);
    leaseOf(response)?.release();
    next();
  }
  expect(answers).toBe(exchanges.length);
}

export const streamCases: Readonly<Record<string, Case>> = {
  client_streaming: async ({ client }) => {
    const sum = await client.streamingInputCall([27_182, 8, 1828, 45_904].map(input));
    expect(sum).toMatchObject({ aggregatedPayloadSize: 74_922n, messages: 4 });
  },

  server_streaming: async ({ client }) => {
    const wanted = [31_415, 9, 2653, 58_979];
    expect(await bodies(client.streamingOutputCall(asked(...wanted)))).toEqual(wanted);
  },

  ping_pong: (peer) =>
    pingPong(peer, [
      [27_182, 31_415],
      [8, 9],
      [1828, 2653],
      [45_904, 58_979],
    ]),

  empty_stream: async ({ client }) => {
    expect(await bodies(client.fullDuplexCall([]))).toEqual([]);
    expect(await client.streamingInputCall([])).toMatchObject({ messages: 0 });
    expect(await bodies(client.streamingOutputCall({}))).toEqual([]);
  },

  half_duplex: async ({ client }) => {
    expect(await bodies(client.halfDuplexCall([asked(1, 2), asked(), asked(30_000)]))).toEqual([
      1, 2, 30_000,
    ]);
  },

  'client stream: messages on both sides of each limit': async ({ client }) => {
    const requests = sizes.map((bytes) =>
      input(bodyFor(InputRequest, (body) => ({ payload: { body, seed: bytes } }), bytes)),
    );
    const { messages, aggregatedPayloadSize } = await client.streamingInputCall(requests);
    expect(messages).toBe(sizes.length);
    expect(Number(aggregatedPayloadSize)).toBe(
      requests.reduce((sum, { payload }) => sum + payload!.body!.byteLength, 0),
    );
  },

  'server stream: messages on both sides of each limit': async ({ client }) => {
    const wanted = sizes.map((bytes) =>
      bodyFor(OutputResponse, (body) => ({ payload: { body, seed: 0 } }), bytes),
    );
    expect(await bodies(client.streamingOutputCall(asked(...wanted)))).toEqual(wanted);
  },

  'bidirectional: messages on both sides of each limit': (peer) =>
    pingPong(
      peer,
      sizes.map((bytes) => [
        bodyFor(OutputRequest, (body) => ({ ...asked(1), payload: { body, seed: bytes } }), bytes),
        bodyFor(OutputResponse, (body) => ({ payload: { body, seed: bytes } }), bytes),
      ]),
    ),

  'many small messages stay in order, and large ones among them in their place': async ({ client }) => {
    const wanted = Array.from({ length: 3000 }, (_, i) => (i % 500 === 250 ? 100_000 + i : i % 700));
    expect(await bodies(client.streamingOutputCall(asked(...wanted)))).toEqual(wanted);
    const { messages } = await client.streamingInputCall(wanted.map(input));
    expect(messages).toBe(wanted.length);
    const requests = wanted.slice(0, 1000).map((size) => asked(size));
    expect(await bodies(client.fullDuplexCall(requests))).toEqual(wanted.slice(0, 1000));
  },

  'custom_metadata of a stream': async ({ client }) => {
    const value = Uint8Array.of(0xab, 0, 0xff);
    const echoed = echoes([
      [headerKey, 'a value'],
      [trailerKey, value],
    ]);
    expect(await bodies(client.fullDuplexCall([asked(314_159)], echoed.options))).toEqual([314_159]);
    expect(echoed.header.getAll(headerKey)).toEqual(['a value']);
    expect(echoed.trailer.getAll(trailerKey)).toEqual([value]);
    const ofSum = echoes([
      [headerKey, 'another'],
      [trailerKey, value],
    ]);
    await client.streamingInputCall([input(10), input(100_000)], ofSum.options);
    expect(ofSum.header.getAll(headerKey)).toEqual(['another']);
    expect(ofSum.trailer.getAll(trailerKey)).toEqual([value]);
  },

  'status_code_and_message of a stream': async ({ client }) => {
    const responseStatus = { code: Status.UNKNOWN, message: 'test status message' };
    const streams = [
      client.fullDuplexCall([{ ...asked(9, 20_000), responseStatus }]),
      client.streamingOutputCall({ ...asked(9, 20_000), responseStatus }),
    ];
    for (const stream of streams) {
      const sizes: number[] = [];
      const reading = (async () => {
        for await (const { payload } of stream) sizes.push(payload!.body.byteLength);
      })();
      const error = await failure(reading);
      expect(error).toMatchObject({
        code: Status.UNKNOWN,
        rawMessage: 'test status message',
        processed: 'yes',
      });
      expect(sizes).toEqual([9, 20_000]);
    }
  },

  'cancel_after_begin of a stream': async ({ client, log }) => {
    const { started, left } = await log();
    const giveUp = new AbortController();
    const { stream } = questions();
    const call = failure(
      client.streamingInputCall(stream as AsyncIterable<never>, { signal: giveUp.signal }),
    );
    await until(async () => (await log()).started > started);
    giveUp.abort();
    expect(await call).toMatchObject({ code: Status.CANCELLED });
    await until(async () => (await log()).left > left);
  },

  cancel_after_first_response: async ({ client, log }) => {
    for (const size of [31_415, 9]) {
      const { left } = await log();
      const giveUp = new AbortController();
      const { stream, ask } = questions();
      ask({ ...asked(size), payload: { body: pattern(27_182, 1), seed: 1 } });
      const reading = (async () => {
        for await (const response of client.fullDuplexCall(stream, { signal: giveUp.signal })) {
          expect(response.payload?.body.byteLength).toBe(size);
          giveUp.abort();
        }
      })();
      expect(await failure(reading)).toMatchObject({ code: Status.CANCELLED });
      await until(async () => (await log()).left > left);
    }
  },

  'timeout_on_sleeping_server of a stream': async ({ client }) => {
    const { stream, ask } = questions();
    ask({ payload: { body: pattern(27_182, 1), seed: 1 } });
    const error = await failure(bodies(client.fullDuplexCall(stream, { timeoutMs: 1 })));
    expect(error).toMatchObject({ code: Status.DEADLINE_EXCEEDED });
    const slow = { responseParameters: [{ size: 10 }, { size: 10, intervalUs: 600_000_000 }] };
    const late = await failure(bodies(client.streamingOutputCall(slow, { timeoutMs: 20 })));
    expect(late).toMatchObject({ code: Status.DEADLINE_EXCEEDED });
  },

  'a reader that leaves ends the stream at the server': async ({ client, log }) => {
    for (const size of [10, 100_000]) {
      const { left } = await log();
      const wanted = Array.from({ length: 1000 }, () => size);
      for await (const response of client.streamingOutputCall(asked(...wanted))) {
        expect(response.payload?.body.byteLength).toBe(size);
        leaseOf(response)?.release();
        break;
      }
      await until(async () => (await log()).left > left);
    }
  },

  'requests that end in an error cancel the stream': async ({ client, log }) => {
    const { left } = await log();
    async function* requests() {
      yield input(10);
      throw new Error('no more of this');
    }
    const error = await client.streamingInputCall(requests()).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(String((error as RpcError).cause ?? error)).toContain('no more of this');
    await until(async () => (await log()).left > left);
  },

  'a stream that is not read does not hold up other streams': async ({ client }) => {
    const endless = Array.from({ length: 2000 }, () => 5000);
    const stream = client.streamingOutputCall(asked(...endless))[Symbol.asyncIterator]();
    await stream.next();
    for (let i = 0; i < 50; ++i) await client.emptyCall({});
    expect(await bodies(client.streamingOutputCall(asked(50_000, 10)))).toEqual([50_000, 10]);
    await stream.return?.();
  },

  'as many streams at once as may be open, and more': async ({ client }) => {
    const sizes = [10, 20_000, 500];
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        i % 2 === 0
          ? bodies(client.streamingOutputCall(asked(...sizes)))
          : client.streamingInputCall(sizes.map(input)).then(({ messages }) => messages),
      ),
    );
    for (const [i, result] of results.entries()) expect(result).toEqual(i % 2 === 0 ? sizes : sizes.length);
  },
};
