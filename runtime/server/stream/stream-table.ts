/** The parts of a server session that a stream uses; implemented by ServerStreams. */

import type { Submission } from '../../boundary/outgoing/submission.ts';
import type { IncomingParts } from '../../stream/incoming-parts.ts';
import type { StalledStream, StalledStreams } from '../../stream/stalled-streams.ts';
import type { Shared } from '../server-session.ts';

/** A stream as the table has it. */
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
  /** Answers a PULL with an empty part: no more messages follow, or (with flags 0) none yet. */
  answerPull(handle: number, stream: number, sequence: number, flags?: number): void;
  /** The stream has ended. */
  leave(stream: TableStream): void;
  /** A stream has ended, and its handler has finished. */
  onHandlerDone(): void;
}
