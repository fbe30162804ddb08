/** The messages between the orchestrator and its two processes, over Node's IPC channel. */
import type { Window } from './measure.ts';
import type { Measurement } from './rows.ts';
import type { Scenario } from './scenarios.ts';

/** The third argument of both processes, as JSON. */
export interface EndArguments {
  peer: string;
  socket: string;
  port?: number;
  polling: 'adaptive' | 'event';
  descriptors: readonly number[];
  tls?: string;
}

export type ToEnd =
  | { type: 'run'; scenario: Scenario; window: Window; serverPid: number }
  | { type: 'open'; connections: number }
  | { type: 'stop' };

export type FromEnd =
  | { type: 'ready'; port?: number | undefined }
  | { type: 'opened' }
  | { type: 'measured'; measurement: Measurement }
  | { type: 'failed'; reason: string };
