/**
 * The measured candidates: each codec on each message, after a check that the codecs agree. contender.ts uses
 * them, and runs one codec per process.
 */
import { type MessageType, Source, Writer } from 'rdma-rpc/codec';
import { loopCharsMax, readUtf8, writeShort, writeUtf8 } from '../../runtime/codec/primitives/text.ts';
import { gatherBytes, leaseBytes } from '../../runtime/limits.ts';
import { type Peer, protobufEs, protobufjsStatic } from './peers.ts';
import type { Case } from './values.ts';

/**
 * Encodes as calls do, into existing memory. A message that does not fit a slot is encoded once more as bulk,
 * with large `bytes` left in place. Such a message is decoded as views. The goals refer to this candidate.
 */
export const asCalls = 'rdma-rpc, in a call';
/** The convenience functions, which allocate their own memory and copy `bytes` in both directions. */
export const standalone = 'rdma-rpc, encode()';

/**
 * The limit of what a codec can reach. This candidate is not a codec itself. It writes the strings of a list,
 * one after another, with the functions that our codec uses. It leaves out tags, lengths, checks, and the
 * check of the remaining room. It reads the strings back from known offsets.
 */
export const charactersAlone = 'characters alone';

/** The codecs, in the order of the table. */
export const codecs = [asCalls, standalone, 'protobufjs static', 'protobuf-es', charactersAlone] as const;
export type CodecName = (typeof codecs)[number];

export const directions = ['encode', 'decode'] as const;
export type Direction = (typeof directions)[number];

export type Candidate = Readonly<Record<Direction, () => unknown>>;

type AnyType = MessageType<unknown, unknown>;

function asACall(type: AnyType, message: unknown, encoded: Uint8Array): Candidate {
  const writer = new Writer();
  const bulk = new Writer();
  const source = new Source();
  const slot = new Uint8Array(16 * 1024);
  const received = new Uint8Array(128 * 1024);
  received.set(encoded);
  bulk.gatherBytes = gatherBytes;
  source.leaseBytes = leaseBytes;
  source.reset(received);
  return {
    encode: () => {
      writer.reset(slot);
      const end = type.encodeTo(message, writer, 0, slot.length);
      if (!writer.full) return end;
      bulk.reset(slot);
      if (type.bound(message, bulk) > slot.length)
        throw new Error('the memory of the benchmark is too small');
      return type.encodeTo(message, bulk, 0);
    },
    decode: () => type.decodeFrom(source, 0, encoded.length),
  };
}

/** Returns the strings of a message that contains nothing else, or undefined for other messages. */
function stringsOf(message: object): readonly string[] | undefined {
  const [values, ...more] = Object.values(message) as unknown[];
  const only = more.length === 0 && Array.isArray(values) && values.every((each) => typeof each === 'string');
  return only ? values : undefined;
}

/** Returns whether the codec can handle the message. */
export function applies(codec: CodecName, { message }: Case): boolean {
  return codec !== charactersAlone || stringsOf(message) !== undefined;
}

function characters(texts: readonly string[]): Candidate {
  const bytes = new Uint8Array(16 * 1024);
  const source = new Source();
  source.reset(bytes);
  const write = (at: number, text: string) =>
    text.length > loopCharsMax ? writeUtf8(bytes, at, text) : writeShort(bytes, at, text);
  const ends: number[] = [];
  for (const text of texts) ends.push(write(ends.at(-1) ?? 0, text));
  return {
    encode: () => {
      let at = 0;
      for (let i = 0; i < texts.length; i++) at = write(at, texts[i]!);
      return at;
    },
    decode: () => {
      const read: string[] = [];
      let at = 0;
      for (let i = 0; i < ends.length; i++) {
        read.push(readUtf8(source, at, ends[i]!));
        at = ends[i]!;
      }
      return read;
    },
  };
}

/** Throws if the peer cannot read what we write, or writes what we cannot read. */
function peerCandidate(peer: Peer, { name, type, message }: Case, encoded: Uint8Array): Candidate {
  const codec = peer.codec(type.typeName);
  // The peers' readers are fastest on the type for which they were made, which is Buffer for protobufjs.
  const input = peer.name === 'protobufjs static' ? Buffer.from(encoded) : encoded;
  const value = codec.create(message);
  for (const each of [value, codec.decode(input)]) {
    const reread = type.encode(type.decode(codec.encode(each)));
    if (Buffer.compare(reread, encoded) !== 0) throw new Error(`${name}: ${peer.name} and rdma-rpc differ`);
  }
  return { encode: () => codec.encode(value), decode: () => codec.decode(input) };
}

/** Creates the candidates of one codec. */
export async function candidateMaker(codec: CodecName): Promise<(of: Case) => Candidate> {
  const peer =
    codec === 'protobufjs static'
      ? await protobufjsStatic()
      : codec === 'protobuf-es'
        ? protobufEs()
        : undefined;
  return (of) => {
    const type = of.type;
    const encoded = type.encode(of.message);
    if (peer !== undefined) return peerCandidate(peer, of, encoded);
    // Decoded messages are encoded too, as a server does, because their maps have a different hidden class
    // from those of literals.
    if (Buffer.compare(type.encode(type.decode(encoded)), encoded) !== 0)
      throw new Error(`${of.name}: what was decoded is not encoded as before`);
    if (codec === charactersAlone) return characters(stringsOf(of.message) ?? []);
    if (codec === asCalls) return asACall(type, of.message, encoded);
    return { encode: () => type.encode(of.message), decode: () => type.decode(encoded) };
  };
}
