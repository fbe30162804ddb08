/**
 * A stream as the table of its session (client-streams.ts) has it: its numbers, and what the table tells it.
 * What a stream is made of (pulls, pushes, its opening) knows no more of it either. A ClientStream is one.
 */
import type { StreamReader } from '../../stream/stream-reader.ts';
import type { ClientMethod } from '../call/client-method.ts';

export interface StreamRow {
  readonly method: ClientMethod;
  /** What the application has given: a message, or an iterable of them. */
  readonly request: unknown;
  readonly reader: StreamReader;
  /** Unique among the open streams of its session. */
  readonly number: number;
  /** Its own call slot. */
  call: number;
  /** Parts on their way, kept by ClientStreams. */
  pushes: number;
  pulls: number;
  pushedBytes: number;
  /** There may be a slot, or memory, for what found none. */
  retry(): void;
  /** `at`: an event of it has this place. */
  onOpenSettled(at: number): void;
  onPushSettled(at: number): void;
  onPullSettled(at: number, sequence: number): void;
  onOpenFailed(reason: number, sent: number, why: string): void;
  onPartFailed(reason: number, why: string): void;
}

/** One that takes part in a session, as its requests and responses know it. */
export interface OpenStream extends StreamRow {
  /** It has not come to its end. */
  readonly sending: boolean;
  /** Ends it from here. `error`: what the application gets. */
  giveUp(reason: number, error: unknown): void;
}
