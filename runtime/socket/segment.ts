/**
 * The messages of a socket's stream (proto/rdma_rpc/socket.proto), and their encoding. Sockets write
 * segments, and the stream encodes them, on the JS thread.
 *
 * A program may change a buffer after the callback of its write was called. Therefore, by default the buffers
 * of a segment are copied once, into the memory from which they are sent. With the option `writesStay`, large
 * buffers are sent directly from their own memory.
 */
import { noRoom, type Writer } from '../codec/memory/writer.ts';
import { messageType } from '../codec/message.ts';
import { Method } from '../codec/service/method.ts';
import type { MessageType } from '../codec/types.ts';
import { gatherBytes } from '../limits.ts';
import { Segment as Generated, type SegmentInit, SocketsDefinition } from './gen/rdma_rpc/socket.rdma.ts';
import { bufferLost, bytesOf } from './segments.ts';

export type Segment = Generated;

/** A segment to send. */
export class OutgoingSegment implements SegmentInit {
  readonly data: Uint8Array[];
  readonly fin: boolean;
  readonly reset: boolean;
  // Only the fields of the message may be own properties (core/message-check.ts).
  readonly #byteLength: number;
  #fault: Error | undefined;
  readonly #inPlace: boolean;

  /**
   * `stays` is true when the buffers will not be changed any more, so that large buffers do not have to be
   * copied.
   */
  constructor(data: Uint8Array[], stays = false, fin = false, reset = false) {
    this.data = data;
    this.fin = fin;
    this.reset = reset;
    this.#byteLength = bytesOf(data);
    this.#inPlace = stays && data.some(({ byteLength }) => byteLength >= gatherBytes);
  }

  get inPlace(): boolean {
    return this.#inPlace;
  }

  get byteLength(): number {
    return this.#byteLength;
  }

  /** The reason why the segment cannot be encoded. */
  get fault(): Error | undefined {
    return this.#fault;
  }

  /** Throws when a buffer has lost its bytes since it was written. */
  check(): void {
    if (bytesOf(this.data) === this.#byteLength) return;
    this.#fault = bufferLost();
    throw this.#fault;
  }
}

const dataTag = 0x0a;
const finTag = 0x10;
const resetTag = 0x18;
/** Most bytes of a tag and a length. */
const headBytesMax = 6;

/** Writes a length as a varint. Returns the position behind it. */
function writeLength(bytes: Uint8Array, at: number, length: number): number {
  let left = length;
  let to = at;
  for (; left > 0x7f; left >>>= 7) bytes[to++] = (left & 0x7f) | 0x80;
  bytes[to++] = left;
  return to;
}

function copiedBound({ byteLength, fin, reset }: OutgoingSegment): number {
  return (byteLength === 0 ? 0 : headBytesMax + byteLength) + (fin ? 2 : 0) + (reset ? 2 : 0);
}

/** Encodes all buffers as one value. */
function encodeCopied(segment: OutgoingSegment, writer: Writer, start: number, limit: number): number {
  if (start + copiedBound(segment) > limit) return noRoom(writer, start);
  const { bytes } = writer;
  const { byteLength, data, fin, reset } = segment;
  let at = start;
  if (byteLength !== 0) {
    bytes[at++] = dataTag;
    at = writeLength(bytes, at, byteLength);
    for (const each of data) {
      bytes.set(each, at);
      at += each.byteLength;
    }
  }
  if (fin) {
    bytes[at++] = finTag;
    bytes[at++] = 1;
  }
  if (reset) {
    bytes[at++] = resetTag;
    bytes[at++] = 1;
  }
  return at;
}

const segmentType: MessageType<Generated, OutgoingSegment> = messageType<Generated, OutgoingSegment>({
  typeName: Generated.typeName,
  create: (init) => Generated.create(init),
  bound: (segment, writer) => {
    segment.check();
    return segment.inPlace ? Generated.bound(segment, writer) : copiedBound(segment);
  },
  encodeTo: (segment, writer, at, limit = writer.bytes.length) =>
    segment.inPlace
      ? Generated.encodeTo(segment, writer, at, limit)
      : encodeCopied(segment, writer, at, limit),
  decodeFrom: (source, at, end) => Generated.decodeFrom(source, at, end),
  fields: () => Generated.fields(),
});

const { fullName, id } = SocketsDefinition.methods.connect;
const connect = new Method({
  fullName,
  id,
  input: segmentType,
  requestStream: true,
  output: segmentType,
  responseStream: true,
  options: {},
});

/** The service of sockets, with the message types of this file. */
export const socketService = { ...SocketsDefinition, methods: { connect } };
