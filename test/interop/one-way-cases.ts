/**
 * Lists interoperability cases of one-way calls. gRPC has no such cases, so these are our own cases, with the
 * sizes of the other cases.
 */
import { RpcError, Status } from 'rdma-rpc';
import { expect } from 'vitest';
import { SimpleRequest, type SimpleRequestInit } from './gen/interop.rdma.ts';
import { bodyFor, boundaries, pattern } from './sizes.ts';
import { type Case, failure, until } from './unary-cases.ts';

function note(body: number, seed: number): SimpleRequestInit {
  return { payload: { body: pattern(body, seed), seed } };
}

const bodies = boundaries.map((bytes) =>
  bodyFor(SimpleRequest, (body) => ({ payload: { body, seed: bytes } }), bytes),
);

export const oneWayCases: Readonly<Record<string, Case>> = {
  'one-way requests on both sides of each limit': async ({ client, log }) => {
    for (const body of bodies) {
      const before = await log();
      expect(await client.noteCall(note(body, body))).toBe(undefined);
      const after = await log();
      expect([after.notes - before.notes, after.noteBytes - before.noteBytes]).toEqual([1, body]);
    }
  },

  'many one-way requests at once, each arrives once': async ({ client, log }) => {
    const before = await log();
    const calls = Array.from({ length: 300 }, (_, i) => client.noteCall(note((i % 20) * 1000, i)));
    await Promise.all(calls);
    const after = await log();
    expect(after.notes - before.notes).toBe(300);
    expect(after.noteBytes - before.noteBytes).toBe(15 * 1000 * 190);
  },

  'a one-way request says nothing of what became of it': async ({ client }) => {
    for (const body of [10, 100_000]) {
      const responseStatus = { code: Status.NOT_FOUND, message: 'nobody hears of it' };
      expect(await client.noteCall({ ...note(body, 1), responseStatus })).toBe(undefined);
      // The handler continues to sleep, and no caller waits for it either.
      expect(await client.noteCall({ ...note(body, 2), sleepMs: 20 })).toBe(undefined);
    }
  },

  'a one-way request that is given up': async ({ client, log }) => {
    const { notes } = await log();
    const error = await failure(client.noteCall(note(10, 1), { signal: AbortSignal.abort() }));
    expect(error).toMatchObject({ code: Status.CANCELLED, processed: 'no' });
    // Either the event or the answer may come first. However, a call that has run must not report `no`.
    for (const body of [10, 100_000]) {
      const before = (await log()).notes;
      const giveUp = new AbortController();
      const call = client.noteCall(note(body, 3), { signal: giveUp.signal });
      const ended = call.catch((thrown: unknown) => RpcError.from(thrown));
      giveUp.abort();
      const how = await ended;
      if (how === undefined) await until(async () => (await log()).notes > before);
      else expect(how.code).toBe(Status.CANCELLED);
      await client.emptyCall({});
      if (how?.processed === 'no') expect((await log()).notes).toBe(before);
    }
    expect((await log()).notes).toBeLessThanOrEqual(notes + 2);
  },
};
