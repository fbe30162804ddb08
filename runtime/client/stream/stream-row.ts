/**
 * The interface of a stream for the table of its session (client-streams.ts): its numbers, and the
 * notifications of the table. The parts of a stream (pulls, pushes, opening) use the same interface. A
 * ClientStream implements it.
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
  /** Call slot of its OPEN. */
  call: number;
  /** Number of parts in flight, maintained by ClientStreams. */
  pushes: number;
  pulls: number;
  pushedBytes: number;
  /** A slot or memory may be available again. */
  retry(): void;
  /** `at` is the position of its event. */
  onOpenSettled(at: number): void;
  onPushSettled(at: number): void;
  onPullSettled(at: number, sequence: number): void;
  onOpenFailed(reason: number, sent: number, why: string): void;
  onPartFailed(reason: number, why: string): void;
}

/** A stream of a session, as its requests and responses use it. */
export interface OpenStream extends StreamRow {
  /** True until it has ended. */
  readonly sending: boolean;
  /** Ends the stream from this side with `error` for the application. */
  giveUp(reason: number, error: unknown): void;
}
