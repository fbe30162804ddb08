/**
 * Flow control of responses: the PULLs (requests for a part) of one stream. The window limits the sum of
 * PULLs in flight and unread parts. It grows when parts arrive, and shrinks when large messages leave less
 * room. A ClientStream owns this object.
 */
import { noMessage } from '../../boundary/outgoing/plain-types.ts';
import { streamBytes, streamParts } from '../../limits.ts';
import { PartFlag, PartKind } from '../../stream/part-header.ts';
import { type ClientStreams, notNow } from './client-streams.ts';
import type { StreamRow } from './stream-row.ts';

/** Number of parts that are requested before the first part has arrived. */
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

  /** Sends as many PULLs as the window allows. Returns 0, or a negated Reason. */
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
   * Runs when a part has arrived. `bytes` is the size of the part's large message, or 0. `short` says that
   * the part came without its message, because the server provides memory for the message only when this
   * side's application waits for it. The part is therefore requested again only when the application waits.
   */
  arrived(last: boolean, bytes: number, short: boolean): void {
    if (last) this.#sawLast = true;
    if (short) this.#window = 1;
    if (short || !this.#stream.method.responseStream) return;
    const most = bytes === 0 ? streamParts : Math.floor(streamBytes / bytes);
    this.#window = Math.max(1, Math.min(streamParts, most, this.#window + 1));
  }
}
