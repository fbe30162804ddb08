/**
 * The details of an error, and how they travel: as a google.rpc.Status in the metadata entry `grpc-status-details-bin`, which is what
 * gRPC does. That message is read and written by hand, since the runtime does not import generated code; `rdma-rpc/details` has
 * the messages that people put in. Used where errors are made, sent and received.
 */
import { Any } from '../codec/google/protobuf/any.rdma.ts';
import { messageType } from '../codec/message.ts';
import {
  readEnd,
  readInt32,
  readLength,
  readMessage,
  readString,
  readTag,
  skipField,
} from '../codec/read.ts';
import type { MessageType } from '../codec/types.ts';
import { closeLength, writeInt32, writeString } from '../codec/write.ts';
import type { Metadata } from './metadata.ts';

export const detailsKey = 'grpc-status-details-bin';
const urlPrefix = 'type.googleapis.com/';

/** One detail, encoded. */
export interface ErrorDetail {
  /** Full name of its message, for example `google.rpc.BadRequest`. */
  readonly type: string;
  readonly value: Uint8Array;
}

/** A detail as it is given to an error: a message and its type, or one that came with another error. */
export type ErrorDetailInit =
  | { readonly type: MessageType<unknown, unknown>; readonly value: object }
  | ErrorDetail;

/** The encoding is made at once, so that a wrong value is an error where it was written. Throws CodecError. */
export function errorDetail({ type, value }: ErrorDetailInit): ErrorDetail {
  if (typeof type === 'string') return { type, value: value as Uint8Array };
  return { type: type.typeName, value: type.encode(value) };
}

interface WireStatus {
  code: number;
  message: string;
  readonly details: ErrorDetail[];
}

/** What a string or bytes field takes besides its content. */
const fieldBytes = 12;

const wireStatus: MessageType<WireStatus, WireStatus> = messageType<WireStatus, WireStatus>({
  typeName: 'google.rpc.Status',
  create: () => ({ code: 0, message: '', details: [] }),
  bound(status) {
    let bytes = 2 * fieldBytes + 3 * status.message.length;
    for (const { type, value } of status.details) {
      bytes += 3 * fieldBytes + 3 * (urlPrefix.length + type.length) + value.byteLength;
    }
    return bytes;
  },
  encodeTo(status, sink, at) {
    const { bytes } = sink;
    bytes[at] = 1 << 3;
    at = writeInt32(bytes, at + 1, status.code, 'google.rpc.Status.code');
    bytes[at] = (2 << 3) | 2;
    at = writeString(bytes, at + 1, status.message);
    for (const { type, value } of status.details) {
      bytes[at] = (3 << 3) | 2;
      const { held } = sink;
      const end = Any.encodeTo({ typeUrl: urlPrefix + type, value }, sink, at + 2);
      at = closeLength(sink, at + 1, held, end);
    }
    return at;
  },
  decodeFrom(source, at, end, depth = 0) {
    readMessage(source, at, depth, 'google.rpc.Status');
    const status: WireStatus = { code: 0, message: '', details: [] };
    while (at < end) {
      const tag = readTag(source, at, end);
      at = source.at;
      if (tag === 1 << 3) status.code = readInt32(source, at, end);
      else if (tag === ((2 << 3) | 2)) status.message = readString(source, at, end);
      else if (tag === ((3 << 3) | 2)) {
        const stop = readLength(source, at, end);
        const { typeUrl, value } = Any.decodeFrom(source, source.at, stop, depth + 1);
        status.details.push({ type: typeUrl.slice(typeUrl.lastIndexOf('/') + 1), value });
        source.at = stop;
      } else source.at = skipField(source, tag, at, end, depth);
      at = source.at;
    }
    readEnd(source, at, end);
    return status;
  },
});

export function encodeDetails(code: number, message: string, details: readonly ErrorDetail[]): Uint8Array {
  return wireStatus.encode({ code, message, details: [...details] });
}

/** Takes the details out of an error's metadata. Without any, or when they are malformed, the metadata stays as it is. */
export function takeDetails(metadata: Metadata | undefined): readonly ErrorDetail[] {
  const bytes = metadata?.get(detailsKey);
  if (metadata === undefined || !(bytes instanceof Uint8Array)) return [];
  try {
    const { details } = wireStatus.decode(bytes);
    metadata.delete(detailsKey);
    return details;
  } catch {
    return [];
  }
}
