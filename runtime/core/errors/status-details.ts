/**
 * The details of an error and their form on the wire: a google.rpc.Status in the metadata entry
 * `grpc-status-details-bin`, as in gRPC. This file encodes and decodes google.rpc.Status by hand, because the
 * runtime does not import generated code. Applications find the generated messages in `rdma-rpc/details`.
 * This file is used where errors are made, sent and received.
 */
import { Any } from '../../codec/google/protobuf/any.rdma.ts';
import { lengthOf } from '../../codec/memory/intrinsic.ts';
import { Source } from '../../codec/memory/source.ts';
import { Writer } from '../../codec/memory/writer.ts';
import { readEnd, readLength, readMessage, readTag, skipField } from '../../codec/primitives/read.ts';
import { closeLength, writeInt32, writeString } from '../../codec/primitives/write.ts';
import type { MessageType } from '../../codec/types.ts';
import type { Metadata } from '../metadata.ts';

export const detailsKey = 'grpc-status-details-bin';
const urlPrefix = 'type.googleapis.com/';

/** One detail in encoded form. */
export interface ErrorDetail {
  /** Full name of its message, for example `google.rpc.BadRequest`. */
  readonly type: string;
  readonly value: Uint8Array;
}

/**
 * A detail that is passed to an error: either a message with its type, or a detail that was received with
 * another error.
 */
export type ErrorDetailInit =
  | { readonly type: MessageType<unknown, unknown>; readonly value: object }
  | ErrorDetail;

/**
 * Encodes the detail at once, so that a wrong value throws where the application created it. Throws
 * CodecError.
 */
export function errorDetail({ type, value }: ErrorDetailInit): ErrorDetail {
  if (typeof type === 'string') return { type, value: value as Uint8Array };
  return { type: type.typeName, value: type.encode(value) };
}

const codeTag = 1 << 3;
const messageTag = (2 << 3) | 2;
const detailTag = (3 << 3) | 2;
/** Maximum size in bytes of a tag with a length, or of a tag with a status code. */
const fieldBytes = 12;

/** Returns an encoded google.rpc.Status. */
export function encodeDetails(code: number, message: string, details: readonly ErrorDetail[]): Uint8Array {
  let room = 2 * fieldBytes + 3 * message.length;
  for (const { type, value } of details) {
    room += 3 * fieldBytes + 3 * (urlPrefix.length + type.length) + lengthOf(value);
  }
  const writer = new Writer();
  const bytes = new Uint8Array(room);
  writer.reset(bytes);
  bytes[0] = codeTag;
  let at = writeInt32(bytes, 1, code, 'google.rpc.Status.code');
  bytes[at] = messageTag;
  at = writeString(writer, at + 1, message, room, 'google.rpc.Status.message');
  for (const { type, value } of details) {
    bytes[at] = detailTag;
    const end = Any.encodeTo({ typeUrl: urlPrefix + type, value }, writer, at + 2);
    at = closeLength(writer, at + 1, writer.held, end);
  }
  return bytes.slice(0, at);
}

/** Throws CodecError. */
function decodeDetails(bytes: Uint8Array): ErrorDetail[] {
  const details: ErrorDetail[] = [];
  const source = new Source();
  source.reset(bytes);
  const end = bytes.byteLength;
  let at = 0;
  readMessage(source, at, 0, 'google.rpc.Status');
  while (at < end) {
    const tag = readTag(source, at, end);
    at = source.at;
    if (tag === detailTag) {
      const stop = readLength(source, at, end);
      const { typeUrl, value } = Any.decodeFrom(source, source.at, stop, 1);
      details.push({ type: typeUrl.slice(typeUrl.lastIndexOf('/') + 1), value });
      at = stop;
    } else at = skipField(source, tag, at, end, 0);
  }
  readEnd(source, at, end);
  return details;
}

/**
 * Removes the details from an error's metadata and returns them. If the details are absent or malformed, the
 * metadata stays unchanged.
 */
export function takeDetails(metadata: Metadata | undefined): readonly ErrorDetail[] {
  const bytes = metadata?.get(detailsKey);
  if (metadata === undefined || !(bytes instanceof Uint8Array)) return [];
  try {
    const details = decodeDetails(bytes);
    metadata.delete(detailsKey);
    return details;
  } catch {
    return [];
  }
}
