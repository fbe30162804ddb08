/**
 * Implements the client of the tests of states. The client makes calls of every kind, with random messages,
 * at a random pace, and checks the answers.
 */
import { type CallOptions, type Client, leaseOf, RpcError, Status, type StreamOptions } from 'rdma-rpc';
import type { Peers } from 'rdma-rpc/reverse';
import { InteropDefinition, type OutputResponse } from '../interop/gen/interop.rdma.ts';
import type { Entry, Ledger } from './ledger.ts';
import { looked, payload, sizes } from './messages.ts';
import type { Pauses } from './pauses.ts';
import type { Random } from './random.ts';

export type TestClient = Client<typeof InteropDefinition>;
/** Makes one call and resolves when it has ended. Rejects with the call's error. */
export type Kind = (client: TestClient, entry: Entry, options: CallOptions) => Promise<void>;

const messagesMax = 14;
const pauseMax = 30;

/**
 * Returns the kinds of calls, by name. `peers` are the peers of the server, if the client serves calls of the
 * server.
 */
export function kindsOf(
  ledger: Ledger,
  pauses: Pauses,
  random: Random,
  peers: Peers | undefined,
): Readonly<Record<string, Kind>> {
  const some = (): number[] => Array.from({ length: random.below(messagesMax) }, () => random.pick(sizes));
  const maybeWait = async (): Promise<void> => {
    if (random.chance(4)) await pauses.wait(random.below(pauseMax));
  };
  /** Passes the call's number in metadata, for handlers whose messages do not contain it. */
  const named = ({ id }: Entry, options: CallOptions): StreamOptions => ({
    ...options,
    metadata: { id: String(id) },
  });

  /** Yields the requests of a stream; the reader must either read all of them or leave them. */
  async function* requests<T>(messages: readonly T[]): AsyncGenerator<T> {
    ++ledger.inside;
    try {
      for (const message of messages) {
        await maybeWait();
        yield message;
      }
    } finally {
      --ledger.inside;
    }
  }

  /** Reads all responses of a stream, or leaves the stream at some point. */
  async function read(entry: Entry, stream: AsyncIterable<OutputResponse>, wanted: readonly number[]) {
    const leaveAt = random.chance(5) ? random.below(wanted.length + 1) : -1;
    let index = 0;
    for await (const response of stream) {
      if (looked(ledger, response.payload, index, wanted[index]) !== entry.id) {
        ledger.fault(`call ${entry.id} got another's message`);
      }
      leaseOf(response)?.release();
      if (index++ === leaveAt) {
        entry.left = true;
        return;
      }
      await maybeWait();
    }
    if (index !== wanted.length) {
      ledger.fault(`call ${entry.id} ended well after ${index} of ${wanted.length} messages`);
    }
  }

  const unary = async (
    client: Pick<TestClient, 'unaryCall'>,
    { id }: Entry,
    options: CallOptions,
  ): Promise<void> => {
    const responseSize = random.pick(sizes);
    const request = { responseSize, payload: payload(id, random.pick(sizes)) };
    const response = await client.unaryCall(request, options);
    if (looked(ledger, response.payload, 0, responseSize) !== id) {
      ledger.fault(`call ${id} got another's answer`);
    }
    leaseOf(response)?.release();
  };
  const oneWay = async (client: Pick<TestClient, 'noteCall'>, { id }: Entry, options: CallOptions) => {
    const told: unknown = await client.noteCall({ payload: payload(id, random.pick(sizes)) }, options);
    if (told !== undefined) ledger.fault(`call ${id} got an answer`);
  };
  /** Returns the client as its server calls it. */
  const back = () => {
    const peer = peers?.all[0];
    if (peer !== undefined) return peers!.client(InteropDefinition, peer);
    throw new RpcError(Status.UNAVAILABLE, 'the client does not serve', { processed: 'no' });
  };
  const kinds: Readonly<Record<string, Kind>> = {
    unary,
    'one-way': oneWay,

    'server stream': (client, entry, options) => {
      const wanted = some();
      const request = {
        responseParameters: wanted.map((size) => ({ size })),
        payload: payload(entry.id, random.pick(sizes)),
      };
      return read(entry, client.streamingOutputCall(request, options), wanted);
    },

    'client stream': async (client, entry, options) => {
      const sent = some();
      const messages = sent.map((size, index) => ({ payload: payload(entry.id, size, index) }));
      const sum = await client.streamingInputCall(requests(messages), named(entry, options));
      const bytes = sent.reduce((all, size) => all + size, 0);
      if (sum.messages !== sent.length || sum.aggregatedPayloadSize !== BigInt(bytes)) {
        ledger.fault(`call ${entry.id}: ${sum.messages} of ${sent.length} messages counted`);
      }
    },

    bidirectional: (client, entry, options) => {
      const wanted: number[] = [];
      const messages = some().map((size, index) => {
        const responses = some().slice(0, 3);
        wanted.push(...responses);
        return {
          payload: payload(entry.id, size, index),
          responseParameters: responses.map((each) => ({ size: each })),
        };
      });
      return read(entry, client.fullDuplexCall(requests(messages), named(entry, options)), wanted);
    },
  };
  // Calls of a server to its client need a client that serves.
  const reversed = Object.entries(kinds).map(([name, kind]): [string, Kind] => [
    `reverse ${name}`,
    async (_, entry, options) => kind(back(), entry, options),
  ]);
  return peers === undefined ? kinds : { ...kinds, ...Object.fromEntries(reversed) };
}
