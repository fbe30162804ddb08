/** Calls of every kind, as client and server make them in the tests of states: what each side saw goes into the ledger. */
import {
  type CallOptions,
  type ClientOf,
  type HandlerContext,
  type HandlersOf,
  leaseOf,
  type RpcError,
} from 'rdma-rpc';
import type { InteropDefinition, Payload, PayloadInit } from '../interop/gen/interop.rdma.ts';
import { isPattern, pattern } from '../interop/sizes.ts';
import type { Ledger } from './ledger.ts';
import type { Random } from './random.ts';

/** Slots hold 1 KiB here: from inline to several READs. */
export const sizes: readonly number[] = [0, 10, 250, 900, 1100, 5000, 40_000];

export type Handlers = Partial<HandlersOf<typeof InteropDefinition>>;
export type Client = ClientOf<typeof InteropDefinition>;
/** Makes one call and returns when it has ended; throws what it failed with. */
export type Kind = (client: Client, id: number, random: Random, options: CallOptions) => Promise<void>;

export function payload(id: number, bytes: number): PayloadInit {
  return { body: pattern(bytes, id), seed: id };
}

/** A payload that has arrived: whose it is, or a fault. */
export function looked(ledger: Ledger, given: Payload | undefined, bytes?: number): number {
  const id = given?.seed ?? 0;
  const body = given?.body ?? new Uint8Array(0);
  if (!isPattern(body, id)) ledger.fault(`a message of call ${id} arrived with other bytes`);
  if (bytes !== undefined && body.byteLength !== bytes) {
    ledger.fault(`a message of call ${id} has ${body.byteLength} bytes instead of ${bytes}`);
  }
  return id;
}

/** Lets handlers wait for so many events. */
export class Pauses {
  #waiting: { events: number; readonly go: () => void }[] = [];

  wait(events: number, { signal }: HandlerContext): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ events, go: resolve });
      signal.addEventListener('abort', () => reject(signal.reason as RpcError));
    });
  }

  /** One event has happened. */
  tick(): void {
    for (const each of this.#waiting) --each.events;
    const due = this.#waiting.filter(({ events }) => events <= 0);
    this.#waiting = this.#waiting.filter(({ events }) => events > 0);
    for (const { go } of due) go();
  }

  get empty(): boolean {
    return this.#waiting.length === 0;
  }
}

export function handlersOf(ledger: Ledger, pauses: Pauses, random: Random): Handlers {
  const begin = (id: number): void => {
    const entry = ledger.find(id);
    if (entry !== undefined) ++entry.began;
  };
  return {
    unaryCall: (request, context) => {
      const id = looked(ledger, request.payload);
      begin(id);
      leaseOf(request)?.release();
      const response = { payload: payload(id, request.responseSize) };
      if (random.chance(2)) return response;
      return pauses.wait(random.below(20), context).then(() => response);
    },
  };
}

export function kindsOf(ledger: Ledger): Readonly<Record<string, Kind>> {
  return {
    unary: async (client, id, random, options) => {
      const responseSize = random.pick(sizes);
      const request = { responseSize, payload: payload(id, random.pick(sizes)) };
      const response = await client.unaryCall(request, options);
      if (looked(ledger, response.payload, responseSize) !== id)
        ledger.fault(`call ${id} got another's answer`);
      leaseOf(response)?.release();
    },
  };
}
