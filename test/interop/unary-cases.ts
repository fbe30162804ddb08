/**
 * Lists gRPC's interoperability cases with one request and one answer. Each case takes two connected ends,
 * and throws when they behave differently. The cases of HTTP (compression per message, cacheable requests),
 * of credentials and of load reports are left out.
 */
import { createClient, leaseOf, Metadata, type MetadataInit, RpcError, Status } from 'rdma-rpc';
import { expect } from 'vitest';
import {
  InteropDefinition,
  SimpleRequest,
  type SimpleRequestInit,
  SimpleResponse,
} from './gen/interop.rdma.ts';
import type { Peer } from './peer.ts';
import { headerKey, trailerKey } from './service.ts';
import { bodyFor, boundaries, isPattern, pattern } from './sizes.ts';

export type Case = (peer: Peer) => Promise<void>;

/** Returns the error of a call that must fail. */
export async function failure(call: Promise<unknown>): Promise<RpcError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(RpcError);
  return error as RpcError;
}

/** Returns options of a call that sends this metadata, and the metadata that comes back. */
export function echoes(metadata: MetadataInit) {
  const got = {
    header: new Metadata(),
    trailer: new Metadata(),
    options: {
      metadata,
      onHeader: (header: Metadata): void => {
        got.header = header;
      },
      onTrailer: (trailer: Metadata): void => {
        got.trailer = trailer;
      },
    },
  };
  return got;
}

function request(body: number, responseSize: number, seed: number): SimpleRequestInit {
  return { responseSize, payload: { body: pattern(body, seed), seed } };
}

async function exchange({ client }: Peer, body: number, responseSize: number, seed: number): Promise<void> {
  const response = await client.unaryCall(request(body, responseSize, seed));
  const answer = response.payload!;
  expect(answer.body.byteLength).toBe(responseSize);
  expect(answer.seed).toBe(seed);
  expect(isPattern(answer.body, seed)).toBe(true);
  leaseOf(response)?.release();
}

export async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve));
}

const requestBody = (bytes: number, seed: number): number =>
  bodyFor(SimpleRequest, (body) => ({ responseSize: 1, payload: { body, seed } }), bytes);
const responseBody = (bytes: number, seed: number, peer: string): number =>
  bodyFor(SimpleResponse, (body) => ({ payload: { body, seed }, peer }), bytes);

export const unaryCases: Readonly<Record<string, Case>> = {
  empty_unary: async ({ client }) => {
    expect(await client.emptyCall({})).toEqual({});
  },

  large_unary: (peer) => exchange(peer, 271_828, 314_159, 1),

  'requests on both sides of each limit': async (peer) => {
    for (const bytes of boundaries) await exchange(peer, requestBody(bytes, bytes), 1, bytes);
  },

  'responses on both sides of each limit': async (peer) => {
    const { peer: name } = await peer.client.unaryCall({});
    for (const bytes of boundaries) await exchange(peer, 1, responseBody(bytes, bytes, name), bytes);
  },

  'both on both sides of each limit': async (peer) => {
    for (const bytes of boundaries) await exchange(peer, bytes, bytes, bytes);
  },

  custom_metadata: async ({ client }) => {
    const value = Uint8Array.of(0xab, 0, 0xff);
    const echoed = echoes([
      [headerKey, 'a value'],
      [trailerKey, value],
      [trailerKey, Uint8Array.of(7)],
    ]);
    await client.unaryCall(request(271_828, 314_159, 1), echoed.options);
    expect(echoed.header.getAll(headerKey)).toEqual(['a value']);
    expect(echoed.trailer.getAll(trailerKey)).toEqual([value, Uint8Array.of(7)]);
    expect([echoed.header.size, echoed.trailer.size]).toEqual([1, 2]);
  },

  'large metadata': async ({ client }) => {
    const value = pattern(8000, 1);
    let trailer = new Metadata();
    const options = { metadata: { [trailerKey]: value }, onTrailer: (got: Metadata) => (trailer = got) };
    await client.unaryCall(request(10, 10, 1), options);
    expect(trailer.get(trailerKey)).toEqual(value);
    const tooLarge = { metadata: { [trailerKey]: pattern(8192, 1) } };
    await expect(client.unaryCall(request(10, 10, 1), tooLarge)).rejects.toThrow(/metadata/);
  },

  status_code_and_message: async ({ client }) => {
    const responseStatus = { code: Status.UNKNOWN, message: 'test status message' };
    const error = await failure(client.unaryCall({ responseStatus }));
    expect(error).toMatchObject({
      code: Status.UNKNOWN,
      rawMessage: 'test status message',
      processed: 'yes',
    });
  },

  'every status code': async ({ client }) => {
    for (let code = 1; code <= 16; ++code) {
      const error = await failure(client.unaryCall({ responseStatus: { code, message: `no. ${code}` } }));
      expect(error).toMatchObject({ code, rawMessage: `no. ${code}` });
    }
  },

  special_status_message: async ({ client }) => {
    const message = '\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n';
    const error = await failure(client.unaryCall({ responseStatus: { code: Status.UNKNOWN, message } }));
    expect(error).toMatchObject({ code: Status.UNKNOWN, rawMessage: message });
  },

  unimplemented_method: async ({ client }) => {
    expect(await failure(client.unimplementedCall({}))).toMatchObject({
      code: Status.UNIMPLEMENTED,
      processed: 'no',
    });
  },

  unimplemented_service: async ({ absent }) => {
    expect(await failure(absent.unimplementedCall({}))).toMatchObject({ code: Status.UNIMPLEMENTED });
  },

  cancel_before_start: async ({ client, log }) => {
    const before = (await log()).started;
    const error = await failure(client.unaryCall(request(10, 10, 1), { signal: AbortSignal.abort() }));
    expect(error).toMatchObject({ code: Status.CANCELLED, processed: 'no' });
    await client.emptyCall({});
    expect((await log()).started).toBe(before);
  },

  cancel_after_begin: async ({ client, log }) => {
    for (const bytes of [10, 100_000]) {
      const { started, aborted } = await log();
      const giveUp = new AbortController();
      const call = failure(
        client.unaryCall({ ...request(bytes, bytes, 1), sleepMs: 600_000 }, { signal: giveUp.signal }),
      );
      await until(async () => (await log()).started > started);
      giveUp.abort();
      const error = await call;
      expect(error.code).toBe(Status.CANCELLED);
      expect(error.processed).not.toBe('no');
      await until(async () => (await log()).aborted > aborted);
    }
  },

  timeout_on_sleeping_server: async ({ client }) => {
    for (const bytes of [10, 100_000]) {
      const call = client.unaryCall({ ...request(bytes, 10, 1), sleepMs: 600_000 }, { timeoutMs: 1 });
      expect(await failure(call)).toMatchObject({ code: Status.DEADLINE_EXCEEDED });
    }
  },

  rpc_soak: async (peer) => {
    for (let i = 0; i < 200; ++i) await exchange(peer, i * 100, i * 110, i);
  },

  channel_soak: async ({ another }) => {
    for (let i = 0; i < 10; ++i) {
      await using channel = another();
      const client = createClient(InteropDefinition, channel);
      const { payload } = await client.unaryCall(request(2000 * i, 2000 * i, i));
      expect(payload?.body.byteLength).toBe(2000 * i);
    }
  },

  concurrent_large_unary: async (peer) => {
    await Promise.all(Array.from({ length: 300 }, (_, i) => exchange(peer, 100_000 + i, 120_000 - i, i)));
  },
};
