/**
 * Flow control of requests: the PUSHes (parts with requests) of one stream. The window limits the unanswered
 * PUSHes. When memory is short, a message is sent only when the server's reader waits for it. To learn this,
 * the client sends an empty part, which the server answers when its reader waits. Streams that are not read
 * therefore hold only a small share of the arena. The Requests of a client stream own this object.
 */

import { noMessage } from '../../boundary/outgoing/plain-types.ts';
import type { MessageType } from '../../codec/types.ts';
import { streamBytes, streamParts } from '../../limits.ts';
import { Reason, Use } from '../../native/native.ts';
import { PartKind } from '../../stream/part-header.ts';
import { type ClientStreams, notNow } from './client-streams.ts';
import type { StreamRow } from './stream-row.ts';

/** Result of `send` when an empty part was sent instead of the message. */
export const skipped = -101;

export class Pushes {
  readonly #stream: StreamRow;
  /** `#asked` is true while an empty part is in flight, and `#awaited` is true when it has been answered. */
  #asked = false;
  #awaited = false;

  constructor(stream: StreamRow) {
    this.#stream = stream;
  }

  /**
   * Sends a part. Returns 0, `notNow`, `skipped`, or a negated Reason. Throws the errors of the message's
   * encoder.
   */
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

  /** Runs when a PUSH has been answered. */
  answered(): void {
    if (!this.#asked || this.#stream.pushes > 0) return;
    this.#asked = false;
    this.#awaited = true;
  }
}
