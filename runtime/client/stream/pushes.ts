/**
 * How much a client sends: the PUSHes of one stream. Those that are not answered are the window. Where memory
 * is short a message goes only when the server's reader waits for it, which an empty part finds out, since it
 * is answered then. So streams that nobody reads hold a small share of the arena. Owned by the Requests of a
 * client stream.
 */

import { noMessage } from '../../boundary/outgoing/plain-types.ts';
import type { MessageType } from '../../codec/types.ts';
import { streamBytes, streamParts } from '../../limits.ts';
import { Reason, Use } from '../../native/native.ts';
import { PartKind } from '../../stream/part-header.ts';
import { type ClientStreams, notNow } from './client-streams.ts';
import type { StreamRow } from './stream-row.ts';

/** `send`: an empty part has gone instead. */
export const skipped = -101;

export class Pushes {
  readonly #stream: StreamRow;
  /** An empty part is on its way; and it has been answered. */
  #asked = false;
  #awaited = false;

  constructor(stream: StreamRow) {
    this.#stream = stream;
  }

  /** 0, `notNow`, `skipped`, or a Reason, negated. What the message's encoder throws comes out. */
  send(
    streams: ClientStreams,
    sequence: number,
    count: number,
    flags: number,
    type: MessageType<unknown, unknown>,
    message: unknown,
  ): number {
    const stream = this.#stream;
    if (stream.pushes >= streamParts || (stream.pushes > 0 && stream.pushedBytes >= streamBytes))
      return notNow;
    if (this.#asked) return notNow;
    const use = this.#awaited ? Use.request : Use.part;
    const result = streams.sendPart(stream, PartKind.push, sequence, count, flags, type, message, use);
    if (result === 0) this.#awaited = false;
    if (result !== -Reason.noMemory) return result;
    if (this.#awaited) return streams.stalled.awaitMemory(stream) ? notNow : result;
    const empty = streams.sendPart(stream, PartKind.push, sequence, 0, 0, noMessage, undefined);
    this.#asked = empty === 0;
    return empty === 0 ? skipped : empty;
  }

  /** A PUSH has been answered. */
  answered(): void {
    if (!this.#asked || this.#stream.pushes > 0) return;
    this.#asked = false;
    this.#awaited = true;
  }
}
