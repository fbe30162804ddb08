/**
 * The measured rows: calls of 32 bytes with optional parts, and larger messages of many fields. Both ends and
 * the orchestrator read them.
 */

export interface ExtrasRow {
  readonly name: string;
  /**
   * The number of parts (as named by the row) in a call. The call's extra cost is divided by this number,
   * which is 0 when the call is compared as a whole.
   */
  readonly each: number;
  readonly inFlight: number;
  readonly message: 'small' | 'nested' | 'map';
  /** Bytes of the payload of a small message. */
  readonly bytes: number;
  /** Whether the server calls the client. */
  readonly isReverse: boolean;
  /** Number of interceptors, which return what `next` returns. */
  readonly clientInterceptors: number;
  readonly serverInterceptors: number;
  /** Whether the request's metadata has eight entries, and whether the handler reads each of them. */
  readonly metadata: boolean;
  readonly reads: boolean;
  /** Whether the response's trailer has eight entries, which the caller reads. */
  readonly trailer: boolean;
  readonly signal: 'none' | 'made' | 'timeout' | 'shared';
  /** The goal in microseconds of CPU time for each part. It is undefined when the row has no goal. */
  readonly goalUs?: number;
}

const plain: ExtrasRow = {
  name: 'plain',
  each: 0,
  inFlight: 256,
  message: 'small',
  bytes: 32,
  isReverse: false,
  clientInterceptors: 0,
  serverInterceptors: 0,
  metadata: false,
  reads: false,
  trailer: false,
  signal: 'none',
};

const interceptorUs = 0.15;
const entryUs = 0.15;
const signalUs = 6;

export const rows: readonly ExtrasRow[] = [
  plain,
  { ...plain, name: 'interceptors-client-1', each: 1, clientInterceptors: 1 },
  { ...plain, name: 'interceptors-client-10', each: 10, clientInterceptors: 10, goalUs: interceptorUs },
  { ...plain, name: 'interceptors-server-1', each: 1, serverInterceptors: 1 },
  { ...plain, name: 'interceptors-server-10', each: 10, serverInterceptors: 10, goalUs: interceptorUs },
  { ...plain, name: 'metadata-8', each: 8, metadata: true, goalUs: entryUs },
  { ...plain, name: 'metadata-8-read', each: 8, metadata: true, reads: true, goalUs: entryUs },
  { ...plain, name: 'trailer-8-read', each: 8, trailer: true, reads: true, goalUs: entryUs },
  { ...plain, name: 'signal-shared', each: 1, signal: 'shared' },
  { ...plain, name: 'signal-timeout', each: 1, signal: 'timeout', goalUs: signalUs },
  // This row shows the cost of Node itself for creating a signal that is never used.
  { ...plain, name: 'signal-made', each: 1, signal: 'made' },
  // These rows are large echoes, and calls from the server to the client.
  { ...plain, name: 'bytes-1MiB', inFlight: 4, bytes: 1024 * 1024 },
  { ...plain, name: 'bytes-16MiB', inFlight: 2, bytes: 16 * 1024 * 1024 },
  { ...plain, name: 'reverse', isReverse: true },
  { ...plain, name: 'reverse-1MiB', inFlight: 4, bytes: 1024 * 1024, isReverse: true },
  { ...plain, name: 'reverse-16MiB', inFlight: 2, bytes: 16 * 1024 * 1024, isReverse: true },
  { ...plain, name: 'nested-1000', inFlight: 4, message: 'nested' },
  { ...plain, name: 'map-500', inFlight: 4, message: 'map' },
];

export function rowOf(name: string): ExtrasRow {
  const row = rows.find((each) => each.name === name);
  if (row === undefined)
    throw new Error(`no row ${name}; available: ${rows.map((each) => each.name).join(', ')}`);
  return row;
}
