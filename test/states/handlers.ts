/**
 * Implements the server of the tests of states. The server's handlers of every kind of call wait now and
 * then, and report to the ledger what they saw.
 */
import { type Handlers, leaseOf } from 'rdma-rpc';
import type { InteropDefinition, OutputRequest } from '../interop/gen/interop.rdma.ts';
import type { Entry, Ledger } from './ledger.ts';
import { looked, payload } from './messages.ts';
import type { Pauses } from './pauses.ts';
import type { Random } from './random.ts';

export type TestHandlers = Partial<Handlers<typeof InteropDefinition>>;

/** The pause is longer than most calls take. */
const pauseMax = 20;

export function handlersOf(ledger: Ledger, pauses: Pauses, random: Random): TestHandlers {
  const begin = (id: number): Entry | undefined => {
    const entry = ledger.find(id);
    if (entry !== undefined) ++entry.began;
    return entry;
  };
  const maybeWait = async (signal: AbortSignal): Promise<void> => {
    if (random.chance(3)) await pauses.wait(random.below(pauseMax), signal);
  };
  /**
   * Yields the responses that a request of a bidirectional stream asks for. The first message of the call's
   * answers is number `from`.
   */
  async function* answers(request: OutputRequest, id: number, from: number, signal: AbortSignal) {
    let index = from;
    for (const { size } of request.responseParameters) {
      await maybeWait(signal);
      yield { payload: payload(id, size, index++) };
    }
  }
  return {
    unaryCall: (request, { signal }) => {
      const id = looked(ledger, request.payload);
      begin(id);
      leaseOf(request)?.release();
      const response = { payload: payload(id, request.responseSize) };
      if (random.chance(2)) return response;
      return pauses.wait(random.below(pauseMax), signal).then(() => response);
    },
    noteCall: async (request, { signal }) => {
      begin(looked(ledger, request.payload));
      leaseOf(request)?.release();
      ++ledger.inside;
      try {
        if (random.chance(2)) await pauses.wait(random.below(pauseMax), signal);
      } finally {
        --ledger.inside;
      }
    },
    async *streamingOutputCall(request, { signal }) {
      const id = looked(ledger, request.payload);
      begin(id);
      leaseOf(request)?.release();
      ++ledger.inside;
      try {
        yield* answers(request, id, 0, signal);
      } finally {
        --ledger.inside;
      }
    },
    async streamingInputCall(requests, { metadata, signal }) {
      begin(Number(metadata.get('id')));
      ++ledger.inside;
      try {
        let messages = 0;
        let bytes = 0;
        for await (const request of requests) {
          looked(ledger, request.payload, messages++);
          bytes += request.payload?.body.byteLength ?? 0;
          leaseOf(request)?.release();
          await maybeWait(signal);
        }
        return { messages, aggregatedPayloadSize: BigInt(bytes) };
      } finally {
        --ledger.inside;
      }
    },
    async *fullDuplexCall(requests, { metadata, signal }) {
      const id = Number(metadata.get('id'));
      begin(id);
      ++ledger.inside;
      try {
        let questions = 0;
        let given = 0;
        for await (const request of requests) {
          looked(ledger, request.payload, questions++);
          leaseOf(request)?.release();
          yield* answers(request, id, given, signal);
          given += request.responseParameters.length;
        }
      } finally {
        --ledger.inside;
      }
    },
  };
}
