/**
 * Encodes a message whose upper bound of the size (`bound`) is known. Code that has allocated memory of that
 * size calls it, on the thread of the call.
 */
import { CodecError } from './error.ts';
import type { Writer } from './memory/writer.ts';
import type { MessageType } from './types.ts';

/**
 * Encodes at `at` and returns the end. Throws CodecError if getters of the message return more than they did
 * for `bound`, because part of the message would then be missing.
 */
export function encodeMeasured<Init>(
  type: Pick<MessageType<unknown, Init>, 'typeName' | 'encodeTo'>,
  message: Init,
  writer: Writer,
  at: number,
): number {
  const end = type.encodeTo(message, writer, at);
  if (writer.full) throw new CodecError(type.typeName, 'it became larger while it was being encoded');
  return end;
}
