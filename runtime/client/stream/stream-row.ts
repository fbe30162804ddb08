/**
 * The interface of a stream for the table of its session (client-streams.ts): the numbers of the stream, and
 * the functions by which the table notifies it. The files pulls.ts, pushes.ts and opening.ts use the same
 * interface. A ClientStream implements it.
 */
import type { StreamReader } from '../../stream/stream-reader.ts';
import type { ClientMethod } from '../call/client-method.ts';

export interface StreamRow {
  readonly method: ClientMethod;
  /** The application's request: a message, or an iterable of messages. */
  readonly request: unknown;
  readonly reader: StreamReader;
  /** Unique among the open streams of its session. */
  readonly number: number;
  /** Call slot of the OPEN. */
  call: number;
  /** Number of parts in flight, maintained by ClientStreams. */
  pushes: number;
  pulls: number;
  pushedBytes: number;
  /** Runs when a slot or memory may be available again. */
  retry(): void;
  /** Runs when the server has answered the OPEN. `at` is the position of the event. */
  onOpenSettled(at: number): void;
  onPushSettled(at: number): void;
  onPullSettled(at: number, sequence: number): void;
  onOpenFailed(reason: number, sent: number, why: string): void;
  onPartFailed(reason: number, why: string): void;
}

/** The interface of an open stream for its requests and responses. */
export interface OpenStream extends StreamRow {
  /** True until the stream has ended. */
  readonly sending: boolean;
  /** Ends the stream from this side with `error` for the application. */
  giveUp(reason: number, error: unknown): void;
}
