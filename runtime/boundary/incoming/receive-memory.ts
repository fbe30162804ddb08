/**
 * What a context's sessions read messages from and none of them has for itself: memory of short messages, of
 * such as came in segments, and the place for a block of the arena. One for all of them, since they read one
 * after the other: with a thousand sessions whatever each has of its own is in no cache when its turn comes.
 * Owned by the fabric context.
 */
import { AlignedMessage } from '../../codec/memory/aligned-message.ts';
import { Source } from '../../codec/memory/source.ts';
import type { NativeContext } from '../../native/native.ts';
import { copyValue } from './value-memory.ts';

/** Of memory whose messages are valid during the callback only, so that everything is copied out. */
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
