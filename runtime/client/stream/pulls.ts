/**
 * How much a client asks for: the PULLs of one stream. Those on their way and the parts that its application
 * has not read are the window, which grows with what comes and shrinks to what large messages leave room for.
 * Owned by a ClientStream.
 */
import { noMessage } from '../../boundary/outgoing/plain-types.ts';
import { streamBytes, streamParts } from '../../limits.ts';
import { PartFlag, PartKind } from '../../stream/part-header.ts';
import { type ClientStreams, notNow } from './client-streams.ts';
import type { StreamRow } from './stream-row.ts';

/** Parts asked for before the first has come. */
const firstWindow = 2;

export class Pulls {
  readonly #stream: StreamRow;
  #sequence = 0;
  #window: number;
  #sawLast = false;

  constructor(stream: StreamRow) {
    this.#stream = stream;
    this.#window = stream.method.responseStream ? firstWindow : 1;
  }

  /** Asks for as much as there is room for. 0, or a Reason, negated. */
  send(streams: ClientStreams): number {
    const stream = this.#stream;
    while (!this.#sawLast && stream.pulls + stream.reader.unread < this.#window) {
      const flags = stream.reader.waitsFor(this.#sequence) ? PartFlag.awaited : 0;
      const result = streams.sendPart(stream, PartKind.pull, this.#sequence, 0, flags, noMessage, undefined);
      if (result < 0) return result === notNow ? 0 : result;
      this.#sequence = (this.#sequence + 1) >>> 0;
    }
    return 0;
  }

  /**
   * A part has come, with a large message of so many bytes, or 0. `short`: without its message, for which the
   * server has memory only when the application waits for it. So it is asked for then, and not before.
   */
  arrived(last: boolean, bytes: number, short: boolean): void {
    if (last) this.#sawLast = true;
    if (short) this.#window = 1;
    if (short || !this.#stream.method.responseStream) return;
    const most = bytes === 0 ? streamParts : Math.floor(streamBytes / bytes);
    this.#window = Math.max(1, Math.min(streamParts, most, this.#window + 1));
  }
}
