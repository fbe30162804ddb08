/**
 * The file of a flight recorder: 8 bytes of magic, a version, the length of a JSON text that says who the
 * events are of, the text, and the rows of events (native/telemetry/protocol_event.h), those of the first
 * context first. Written when a session fails (session-traces.ts) and by `rdma-rpc trace`, which reads it.
 */

export interface TraceSession {
  readonly number: number;
  readonly side: 'client' | 'server';
  /** Who the other side is, for people. */
  readonly peer: string;
}

export interface TraceContext {
  readonly fabric: string;
  readonly device: string;
  /** How many of the rows are of this context. */
  readonly rows: number;
  readonly sessions: readonly TraceSession[];
  readonly methods: readonly { readonly id: number; readonly name: string }[];
}

export interface TraceAbout {
  readonly pid: number;
  /** The program and its script, without arguments. */
  readonly command: string;
  /** When it was written: by the clock of the events, and by that of the wall. */
  readonly atNs: number;
  readonly wallMs: number;
  /** Of a session that has failed. */
  readonly reason?: string;
  readonly contexts: readonly TraceContext[];
}

export const traceMagic = 'rdmatrce';
export const traceVersion = 1;
export const traceHeadBytes = 16;

export function traceFile(about: TraceAbout, rows: readonly Uint8Array[]): Uint8Array {
  const text = Buffer.from(JSON.stringify(about));
  const head = Buffer.alloc(traceHeadBytes);
  head.write(traceMagic, 'latin1');
  head.writeUInt32LE(traceVersion, 8);
  head.writeUInt32LE(text.length, 12);
  return Buffer.concat([head, text, ...rows]);
}
