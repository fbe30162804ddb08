/**
 * The file format of traces. A file has 8 bytes of magic, a version, the length of a JSON text, the JSON text
 * with the origin of the events, and the event rows (native/telemetry/protocol_event.h), context by context.
 * A file is written when a session fails (session-traces.ts) and by `rdma-rpc trace`, which also reads files.
 */

export interface TraceSession {
  readonly number: number;
  readonly side: 'client' | 'server';
  /** The peer's name, as users see it. */
  readonly peer: string;
}

export interface TraceContext {
  readonly fabric: string;
  readonly device: string;
  /** Number of rows that belong to this context. */
  readonly rows: number;
  readonly sessions: readonly TraceSession[];
  readonly methods: readonly { readonly id: number; readonly name: string }[];
}

export interface TraceAbout {
  readonly pid: number;
  /** The program and its script, without arguments. */
  readonly command: string;
  /** Time of writing, in nanoseconds on the clock of the events and as wall time. */
  readonly atNs: number;
  readonly wallMs: number;
  /** The reason why the session has failed. */
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
