/**
 * Nanoseconds per message of our codec and of the two that TypeScript people use: rounds interleaved, every result checked for equality first.
 * Called by main.ts.
 */
import { type MessageType, Sink, Source } from 'rdma-rpc/codec';
import { gatherBytes, leaseBytes } from '../../runtime/limits.ts';
import type { Peer } from './peers.ts';
import { type Case, cases } from './values.ts';

export const directions = ['encode', 'decode'] as const;
export type Direction = (typeof directions)[number];

export interface Speed {
  readonly case: Case;
  readonly encodedBytes: number;
  readonly peer: string;
  /** Nanoseconds per message, one figure per round. */
  readonly encode: number[];
  readonly decode: number[];
}

/**
 * As calls do it: into memory that is there already; what does not fit a slot once more, as bulk, with large `bytes` left where they are. Decoded as views.
 * What the goals are about.
 */
export const asCalls = 'rdma-rpc, in a call';
/** The convenience forms, which bring their own memory and copy `bytes` both ways. */
export const standalone = 'rdma-rpc, encode()';

interface Candidate {
  readonly name: string;
  readonly encode: () => unknown;
  readonly decode: () => unknown;
}

/** Kept where the optimiser cannot see that nobody reads it. */
const kept: { value: unknown } = { value: undefined };

/** CPU time of this process, garbage collection included: on a shared machine it moves far less than the clock. */
function nanoseconds(run: () => unknown, roundMs: number): number {
  let calls = 0;
  const start = process.cpuUsage();
  for (;;) {
    for (let i = 0; i < 200; i++) kept.value = run();
    calls += 200;
    const { user, system } = process.cpuUsage(start);
    if (user + system >= roundMs * 1000) return ((user + system) * 1000) / calls;
  }
}

function ours(type: MessageType<unknown, unknown>, message: unknown): Candidate[] {
  const sink = new Sink();
  const bulk = new Sink();
  const source = new Source();
  const slot = new Uint8Array(16 * 1024);
  const encoded = type.encode(message);
  const received = new Uint8Array(128 * 1024);
  received.set(encoded);
  bulk.gatherBytes = gatherBytes;
  source.leaseBytes = leaseBytes;
  source.reset(received);
  return [
    {
      name: asCalls,
      encode: () => {
        sink.reset(slot);
        const end = type.encodeTo(message, sink, 0, slot.length);
        if (!sink.full) return end;
        bulk.reset(slot);
        if (type.bound(message, bulk) > slot.length)
          throw new Error('the memory of the benchmark is too small');
        return type.encodeTo(message, bulk, 0);
      },
      decode: () => type.decodeFrom(source, 0, encoded.length),
    },
    { name: standalone, encode: () => type.encode(message), decode: () => type.decode(encoded) },
  ];
}

/** Throws unless the peer reads what we write and writes what we can read. */
function peerCandidate(peer: Peer, { name, type, message }: Case): Candidate {
  const codec = peer.codec(type.typeName);
  const encoded = type.encode(message);
  // The peers' readers are fastest on what they were made for: Buffers for protobufjs.
  const input = peer.name === 'protobufjs static' ? Buffer.from(encoded) : encoded;
  const value = codec.create(message);
  for (const each of [value, codec.decode(input)]) {
    const reread = type.encode(type.decode(codec.encode(each)));
    if (Buffer.compare(reread, encoded) !== 0) throw new Error(`${name}: ${peer.name} and rdma-rpc differ`);
  }
  return { name: peer.name, encode: () => codec.encode(value), decode: () => codec.decode(input) };
}

export function measureSpeed(peers: readonly Peer[], rounds: number, roundMs: number, only: string): Speed[] {
  return cases
    .filter(({ name }) => name.startsWith(only))
    .flatMap((each) => {
      const candidates = [
        ...ours(each.type, each.message),
        ...peers.map((peer) => peerCandidate(peer, each)),
      ];
      const encodedBytes = each.type.encode(each.message).length;
      const speeds = candidates.map(
        ({ name }): Speed => ({ case: each, encodedBytes, peer: name, encode: [], decode: [] }),
      );
      // Round 0 warms up.
      for (let round = 0; round <= rounds; round++) {
        candidates.forEach((candidate, i) => {
          for (const direction of directions) {
            const figure = nanoseconds(candidate[direction], roundMs);
            if (round > 0) speeds[i]?.[direction].push(figure);
          }
        });
      }
      return speeds;
    });
}
