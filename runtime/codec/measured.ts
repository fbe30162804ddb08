/**
 * The second half of encoding a message that has been measured first. Called by whoever has brought memory of
 * its bound, on the thread of the call.
 */
import { CodecError } from './error.ts';
import type { Sink } from './memory/sink.ts';
import type { MessageType } from './types.ts';

/**
 * Writes at `at` and returns the end. Throws CodecError for a message with getters that gave more now than to
 * `bound`: part of it would be missing.
 */
export function encodeMeasured<Init>(
  type: Pick<MessageType<unknown, Init>, 'typeName' | 'encodeTo'>,
  message: Init,
  sink: Sink,
  at: number,
): number {
  const end = type.encodeTo(message, sink, at);
  if (sink.full) throw new CodecError(type.typeName, 'it grew while it was being encoded');
  return end;
}
