/**
 * Reads and writes the frames of the queue pair in TypeScript. This file mirrors native/session/wire.h
 * (docs/wire/frames.md is normative). The runtime itself never sees a frame, because native code reads and
 * writes all of them. This file is for tests and tools that communicate with a session by hand.
 * test/golden/frames.txt keeps it equal to the native form.
 */

export const wireVersion = 1;
export const headerBytes = 16;
export const gatherEntriesMax = 30;
export const partHeaderBytes = 12;
export const statusTextBytes = 1024;
const addressEnd = 1n << 64n;

export const FrameType = {
  request: 1,
  response: 2,
  cancel: 3,
  credit: 4,
  replyBufferRequest: 5,
  replyBuffer: 6,
  segment: 7,
} as const;
export const Flag = {
  replyBuffer: 1,
  metadata: 2,
  gatherEntries: 4,
  written: 8,
  notRun: 16,
  lasting: 32,
  part: 64,
  aligned: 128,
} as const;

/**
 * Memory of the client that the server may access through `key`. Such memory is a reply buffer to write, or a
 * segment to read. A segment without a key has no address either, because its bytes are in the frame.
 */
export interface Exposed {
  address: bigint;
  /** The length in bytes, greater than 0. */
  length: number;
  key: number;
}

export interface Frame {
  /** A value of FrameType. */
  type: number;
  /** The number of receives that the sender has reposted, at most 65,535. */
  credits: number;
  /** `callWord(slot, generation)` */
  call: number;
  /**
   * The method id of a request, the status of a response or cancel, or the number of bytes of a reply buffer
   * request.
   */
  method: number;
  /** For a request, the remaining time in microseconds; 0 for no limit. */
  timeoutUs: number;
  notRun: boolean;
  /** The request's keys are not windows, so the answer must not invalidate a window. */
  lasting: boolean;
  /** The frame is a part of a stream, so `metadata` begins with a part header. */
  part: boolean;
  /**
   * The message has the aligned layout, in which each segment begins at its own offset (docs/wire/frames.md
   * §2.4).
   */
  aligned: boolean;
  replyBuffer: Exposed | undefined;
  metadata: Uint8Array;
  gatherEntries: readonly Exposed[];
  /**
   * Size of the message in bytes when it is not in the frame: the sum of the segments, or the bytes written
   * into the reply buffer. The value is 0 otherwise.
   */
  total: number;
  /**
   * The message in the frame. For segments, it consists of the segments whose bytes are in the frame, one
   * after another.
   */
  message: Uint8Array;
}

const inlined = ({ key }: Exposed): boolean => key === 0;

export const callWord = (slot: number, generation: number): number => (slot | (generation << 12)) >>> 0;
export const callSlot = (call: number): number => call & 0xfff;
export const callGeneration = (call: number): number => call >>> 12;

/**
 * Builds a frame. Omitted values are 0 or empty. Nothing is checked here, because a test may want to build an
 * invalid frame.
 */
export function buildFrame(given: Partial<Frame> & { type: number }): Uint8Array {
  const {
    type,
    replyBuffer,
    gatherEntries = [],
    metadata = new Uint8Array(),
    message = new Uint8Array(),
  } = given;
  const total = given.total ?? gatherEntries.reduce((sum, gatherEntry) => sum + gatherEntry.length, 0);
  const written = type === FrameType.response && total > 0;
  const flags =
    (replyBuffer === undefined ? 0 : Flag.replyBuffer) |
    (metadata.length === 0 ? 0 : Flag.metadata) |
    (gatherEntries.length === 0 ? 0 : Flag.gatherEntries) |
    (written ? Flag.written : 0) |
    (given.notRun === true ? Flag.notRun : 0) |
    (given.lasting === true ? Flag.lasting : 0) |
    (given.part === true ? Flag.part : 0) |
    (given.aligned === true ? Flag.aligned : 0);
  const bytes = new Uint8Array(
    headerBytes + 16 + 8 + 8 + gatherEntries.length * 16 + 8 + metadata.length + message.length,
  );
  const view = new DataView(bytes.buffer);
  view.setUint8(0, type);
  view.setUint8(1, flags);
  view.setUint16(2, given.credits ?? 0, true);
  view.setUint32(4, given.call ?? 0, true);
  view.setUint32(8, given.method ?? 0, true);
  view.setUint32(12, given.timeoutUs ?? 0, true);
  let at = headerBytes;
  const put = (...words: number[]) => {
    for (const word of words) {
      view.setUint32(at, word, true);
      at += 4;
    }
  };
  const putExposed = ({ address, length, key }: Exposed) => {
    view.setBigUint64(at, address, true);
    at += 8;
    put(length, key);
  };
  if (replyBuffer !== undefined) putExposed(replyBuffer);
  if (metadata.length > 0) put(metadata.length, 0);
  if (gatherEntries.length > 0) {
    put(total, gatherEntries.length);
    gatherEntries.forEach(putExposed);
  }
  if (written) put(total, 0);
  bytes.set(metadata, at);
  bytes.set(message, at + metadata.length);
  return bytes.subarray(0, at + metadata.length + message.length);
}

/**
 * Parses a frame. Returns the parsed frame, or a string with the native parser's reason when the frame is
 * invalid.
 */
export function parseFrame(bytes: Uint8Array): Frame | string {
  if (bytes.length < headerBytes) return 'frame shorter than its header';
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const type = view.getUint8(0);
  const flags = view.getUint8(1);
  const frame: Frame = {
    type,
    credits: view.getUint16(2, true),
    call: view.getUint32(4, true),
    method: view.getUint32(8, true),
    timeoutUs: view.getUint32(12, true),
    notRun: (flags & Flag.notRun) !== 0,
    lasting: (flags & Flag.lasting) !== 0,
    part: (flags & Flag.part) !== 0,
    aligned: (flags & Flag.aligned) !== 0,
    replyBuffer: undefined,
    metadata: new Uint8Array(),
    gatherEntries: [],
    total: 0,
    message: new Uint8Array(),
  };
  return checkHeader(frame, flags, bytes.length) ?? parseRest(frame, flags, bytes, view) ?? frame;
}

/** Checks the rules of the frame's type before the bytes behind the header are read. */
function checkHeader(frame: Frame, flags: number, length: number): string | undefined {
  const { method, timeoutUs } = frame;
  const bare = length === headerBytes && flags === 0;
  switch (frame.type) {
    case FrameType.request:
      if (
        (flags &
          ~(
            Flag.replyBuffer |
            Flag.metadata |
            Flag.gatherEntries |
            Flag.lasting |
            Flag.part |
            Flag.aligned
          )) !==
        0
      ) {
        return 'request with unknown flags';
      }
      if (frame.aligned && (flags & Flag.gatherEntries) === 0)
        return 'the flag of an aligned message in a request without gather entries';
      if (frame.lasting && (flags & (Flag.replyBuffer | Flag.gatherEntries)) === 0)
        return 'the flag of lasting keys in a request that has no key';
      return method === 0 ? 'request without a method' : undefined;
    case FrameType.response:
      if ((flags & ~(Flag.metadata | Flag.written | Flag.notRun | Flag.aligned)) !== 0)
        return 'response with unknown flags';
      if (frame.aligned && (flags & Flag.written) === 0)
        return 'the flag of an aligned message in a response that was not written';
      if (method > 16) return 'response with an unknown status';
      return timeoutUs !== 0 ? 'reserved bits of a response are set' : undefined;
    case FrameType.cancel:
      if (!bare || timeoutUs !== 0) return 'malformed cancel';
      return method !== 1 && method !== 4 ? 'cancel with an unknown status' : undefined;
    case FrameType.credit:
      if (!bare) return 'malformed credit';
      return frame.call !== 0 || method !== 0 || timeoutUs !== 0
        ? 'reserved bits of a credit are set'
        : undefined;
    case FrameType.replyBufferRequest:
      if (!bare || timeoutUs !== 0) return 'malformed reply buffer request';
      return method === 0 ? 'reply buffer request for no bytes' : undefined;
    case FrameType.replyBuffer:
      if (
        (flags & ~(Flag.replyBuffer | Flag.lasting)) !== 0 ||
        flags === Flag.lasting ||
        method !== 0 ||
        timeoutUs !== 0
      )
        return 'malformed reply buffer';
      return length !== headerBytes + (flags !== 0 ? 16 : 0) ? 'reply buffer of a wrong length' : undefined;
    case FrameType.segment:
      if (flags !== 0 || method !== 0 || timeoutUs !== 0) return 'malformed segment';
      return length === headerBytes ? 'segment of no bytes' : undefined;
    default:
      return 'unknown frame type';
  }
}

/** Reads extensions, metadata and message, in this order, into the frame. */
function parseRest(frame: Frame, flags: number, bytes: Uint8Array, view: DataView): string | undefined {
  let at = headerBytes;
  const left = () => bytes.length - at;
  const u32 = () => {
    at += 4;
    return view.getUint32(at - 4, true);
  };
  const exposed = (): Exposed => {
    at += 8;
    return { address: view.getBigUint64(at - 8, true), length: u32(), key: u32() };
  };
  const wraps = ({ address, length }: Exposed) => address + BigInt(length) >= addressEnd;
  let metadataBytes = 0;
  if ((flags & Flag.replyBuffer) !== 0) {
    if (left() < 16) return 'frame shorter than its reply buffer';
    frame.replyBuffer = exposed();
    if (frame.replyBuffer.length === 0) return 'reply buffer of no bytes';
    if (wraps(frame.replyBuffer)) return 'reply buffer wraps around the address space';
  }
  if ((flags & Flag.metadata) !== 0) {
    if (left() < 8) return 'frame shorter than its metadata length';
    metadataBytes = u32();
    if (u32() !== 0) return 'reserved bits of the metadata length are set';
    if (metadataBytes === 0) return 'metadata flag without metadata';
  }
  if ((flags & Flag.gatherEntries) !== 0) {
    if (left() < 8) return 'frame shorter than its gather entry count';
    frame.total = u32();
    const count = u32();
    if (count === 0 || count > gatherEntriesMax) return 'gather entry count out of range';
    if (left() < count * 16) return 'frame shorter than its gather entries';
    frame.gatherEntries = Array.from({ length: count }, exposed);
    if (frame.gatherEntries.some((gatherEntry) => gatherEntry.length === 0))
      return 'gather entry of no bytes';
    if (frame.gatherEntries.some(wraps)) return 'gather entry wraps around the address space';
    if (frame.gatherEntries.some((gatherEntry) => inlined(gatherEntry) && gatherEntry.address !== 0n)) {
      return 'inline gather entry with an address';
    }
    if (frame.gatherEntries.reduce((sum, gatherEntry) => sum + gatherEntry.length, 0) !== frame.total) {
      return 'gather entries do not add up to the total';
    }
    if (frame.gatherEntries.every(inlined)) return 'gather entries without a key';
  }
  if ((flags & Flag.written) !== 0) {
    if (left() < 8) return 'frame shorter than its written length';
    frame.total = u32();
    if (u32() !== 0) return 'reserved bits of the written length are set';
    if (frame.total === 0) return 'written message of no bytes';
  }
  if (left() < metadataBytes) return 'metadata longer than the frame';
  frame.metadata = bytes.subarray(at, at + metadataBytes);
  frame.message = bytes.subarray(at + metadataBytes);
  const inlinedBytes = frame.gatherEntries
    .filter(inlined)
    .reduce((sum, gatherEntry) => sum + gatherEntry.length, 0);
  if (inlinedBytes !== 0) {
    if (inlinedBytes !== frame.message.length) return 'inline entries do not add up to the frame';
  } else if ((flags & (Flag.gatherEntries | Flag.written)) !== 0 && frame.message.length > 0) {
    return 'message bytes in a frame with gather entries or a written message';
  }
  if (frame.part && metadataBytes < partHeaderBytes) return 'part without its header';
  const text =
    frame.type === FrameType.response && frame.method !== 0 ? frame.message.length + frame.total : 0;
  return text > statusTextBytes ? 'status text longer than 1024 bytes' : undefined;
}
