/**
 * Tests which functions get the header and the trailer of an answer, when they get them, and the error when
 * these are too large.
 */
import { type CallOptions, createClient, type HandlerContext, RpcError, Status } from 'rdma-rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { EchoDefinition } from './gen/echo.rdma.ts';
import { openPair, type Pair, pairWays } from './pair.ts';

let pair: Pair | undefined;
afterEach(() => pair?.close());

describe.each(pairWays)('%s', (way) => {
  async function client(answer: (context: HandlerContext) => void, faults: unknown[] = []) {
    const echo = (request: object, context: HandlerContext) => {
      answer(context);
      return request;
    };
    pair = await openPair(way, (server) => server.add(EchoDefinition, { echo }), {
      onHandlerError: (fault) => faults.push(fault),
    });
    return createClient(EchoDefinition, pair.channel);
  }

  /** Makes a call and records its events in order. */
  async function heard(echo: (options: CallOptions) => Promise<unknown>): Promise<string[]> {
    const seen: string[] = [];
    await echo({
      onHeader: (header) => seen.push(`header ${[...header].join()}`),
      onTrailer: (trailer) => seen.push(`trailer ${[...trailer].join()}`),
    }).then(
      () => seen.push('settled'),
      (error: RpcError) => seen.push(error.codeName),
    );
    return seen;
  }

  test('the header comes first, then the trailer, then the call settles', async () => {
    const { echo } = await client((context) => {
      context.trailer.set('cost', '3');
      context.header.set('region', 'north');
      context.sendHeader();
    });
    const expected = ['header region,north', 'trailer cost,3', 'settled'];
    expect(await heard((options) => echo({}, options))).toEqual(expected);
    expect(await heard((options) => echo({ payload: new Uint8Array(50_000) }, options))).toEqual(expected);
  });

  test('metadata that was not sent is not reported', async () => {
    const { echo } = await client((context) => void context.header.set('region', 'north').delete('region'));
    expect(await heard((options) => echo({}, options))).toEqual(['settled']);
  });

  test.each(['onHeader', 'onTrailer'] as const)('an %s that throws fails the call', async (name) => {
    const { echo } = await client(({ header, trailer }) => {
      header.set('k', 'v');
      trailer.set('k', 'v');
    });
    const options: CallOptions = {
      [name]: () => {
        throw new Error('not today');
      },
    };
    await expect(echo({}, options)).rejects.toThrow(/INTERNAL.*not today/);
  });

  test.each([
    ['8 KiB', 'v'.repeat(9000), /header and trailer: metadata is larger than 8192 bytes/],
    [
      'the size of a slot',
      'v'.repeat(8185),
      /header and trailer: metadata is larger than 8192|slot of this connection/,
    ],
  ])('more than %s answers RESOURCE_EXHAUSTED', async (_, value, text) => {
    const { echo } = await client(({ header, trailer }) => {
      header.set('k', value);
      trailer.set('k', 'v');
    });
    const error = await echo({}).then(() => undefined, RpcError.from);
    expect(error).toMatchObject({ code: Status.RESOURCE_EXHAUSTED, processed: 'yes' });
    expect(error?.rawMessage).toMatch(text);
    expect((await heard((options) => echo({}, options))).at(-1)).toBe('RESOURCE_EXHAUSTED');
  });
});
