/**
 * The sources that all sessions of a context share for reading messages: the memory of short messages, the
 * memory of messages that came in segments, and a source for arena blocks. Sharing is possible since the
 * sessions read one after the other. It matters with a thousand sessions: an object that each of them has for
 * itself is in no CPU cache when it is needed. Owned by the fabric context.
 */
import { AlignedMessage } from '../../codec/memory/aligned-message.ts';
import { Source } from '../../codec/memory/source.ts';
import type { NativeContext } from '../../native/native.ts';
import { copyValue } from './value-memory.ts';

/**
 * Returns a source for memory whose messages are valid only during the callback, so that everything is copied
 * out.
 */
export function copiedSource(memory?: ArrayBuffer): Source {
  const source = new Source();
  if (memory !== undefined) source.reset(new Uint8Array(memory));
  source.copyOut = copyValue;
  return source;
}

export class ReceiveMemory {
  readonly short: Source;
  readonly whole: Source;
  readonly block: Source = new Source();
  readonly aligned: AlignedMessage = new AlignedMessage();

  constructor({ shortMessages, reassembledMessages }: NativeContext) {
    this.short = copiedSource(shortMessages);
    this.whole = copiedSource(reassembledMessages);
    this.block.copyOut = copyValue;
  }
}
