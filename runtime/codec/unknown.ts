/**
 * Keeps unknown fields on request: fields that a newer peer has sent and that this version does not know.
 * They are kept as the received bytes. Generated code calls this only if the generator was asked to keep
 * them.
 */
import { lengthOf } from './memory/intrinsic.ts';
import type { Source } from './memory/source.ts';
import { noRoom, type Writer } from './memory/writer.ts';
import { checkBytes } from './primitives/check.ts';

/**
 * The part of a generated message that keeps unknown fields: tags and values, one field after another,
 * exactly as received.
 */
export interface UnknownFields {
  $unknownFields?: Uint8Array | undefined;
}

export function unknownOf(message: object): Uint8Array | undefined {
  return (message as UnknownFields).$unknownFields;
}

export function setUnknown(message: object, fields: Uint8Array): void {
  (message as UnknownFields).$unknownFields = fields;
}

/**
 * Appends the bytes [start, end) of the source, which are one field with its tag. The memory doubles when it
 * is full, so that the time for a message of many small unknown fields grows in proportion to its length.
 */
export function keepUnknown(message: UnknownFields, source: Source, start: number, end: number): void {
  const kept = message.$unknownFields;
  if (kept === undefined) {
    message.$unknownFields = source.slice(start, end);
    return;
  }
  const length = kept.length + end - start;
  let memory = new Uint8Array(kept.buffer, kept.byteOffset);
  if (memory.length < length) {
    memory = new Uint8Array(2 * length);
    memory.set(kept);
  }
  memory.set(source.part(start, end), kept.length);
  message.$unknownFields = memory.subarray(0, length);
}

export function boundUnknown(message: UnknownFields): number {
  const kept = message.$unknownFields;
  return kept === undefined ? 0 : lengthOf(kept);
}

/** Writes the unknown fields behind all other fields. */
export function writeUnknown(writer: Writer, at: number, message: UnknownFields, limit: number): number {
  const kept = message.$unknownFields;
  if (kept === undefined) return at;
  checkBytes(kept, '$unknownFields');
  const length = lengthOf(kept);
  if (at + length > limit) return noRoom(writer, at);
  writer.bytes.set(kept, at);
  return at + length;
}
