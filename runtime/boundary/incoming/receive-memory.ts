/**
 * The sources that all sessions of a context share for reading messages: one for the memory of short
 * messages, one for messages that came in segments, and one for arena blocks. Sharing is possible because the
 * sessions read one after the other. Sharing matters with a thousand sessions: an object that each session
 * has for itself would be in no CPU cache when it is needed. The fabric context owns them.
 */
import { AlignedMessage } from '../../codec/memory/aligned-message.ts';
import { Source } from '../../codec/memory/source.ts';
import type { NativeContext } from '../../native/native.ts';
import { copyValue } from './value-memory.ts';

/**
 * Returns a source for memory whose messages are valid only during the callback, so everything is copied out
 * of them.
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
