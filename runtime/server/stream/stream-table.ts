/** The functions of a server session that a stream uses. ServerStreams implements this interface. */

import type { Submission } from '../../boundary/outgoing/submission.ts';
import type { IncomingParts } from '../../stream/incoming-parts.ts';
import type { StalledStream, StalledStreams } from '../../stream/stalled-streams.ts';
import type { Shared } from '../server-session.ts';

/** A stream in the stream table. */
export interface TableStream extends StalledStream {
  readonly number: number;
}

export interface StreamTable {
  readonly session: Shared;
  readonly incoming: IncomingParts;
  /** The submission for parts with messages. */
  readonly submission: Submission;
  /** Streams whose parts wait for a send slot or for memory. */
  readonly stalled: StalledStreams;
  /** Answers a PUSH, which allows the client to send more. */
  answerPush(handle: number): void;
  /**
   * Answers a PULL with an empty part. The part tells that no more messages follow or, with flags 0, that no
   * message is ready yet.
   */
  answerPull(handle: number, stream: number, sequence: number, flags?: number): void;
  /** Runs when a stream has ended. */
  leave(stream: TableStream): void;
  /** Runs when a stream has ended and its handler has finished. */
  onHandlerDone(): void;
}
