/**
 * Reads a trace file for `rdma-rpc trace`. The file may come from any source, and may be truncated or forged.
 * Therefore its contents are checked, and errors are reported in one sentence.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import {
  type TraceAbout,
  type TraceContext,
  traceHeadBytes,
  traceMagic,
  traceVersion,
} from '../../runtime/boundary/traces/trace-file.ts';
import { isWhole } from '../../runtime/counters/page.ts';
import { eventRowBytes } from '../../runtime/native/event-row.ts';

/** The origin of the events, and the entries of each context. */
export interface Trace {
  readonly about: TraceAbout;
  readonly rows: readonly Uint8Array[];
  /** Number of events that the file should have and that are missing at its end. */
  readonly missing: number;
}

/** A size that the contexts of a large process do not reach. */
const fileBytesMax = 256 * 1024 * 1024;
const textBytesMax = 4 * 1024 * 1024;
const contextsMax = 1024;

const isText = (value: unknown): value is string => typeof value === 'string';
const isList = (value: unknown): value is Record<string, unknown>[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'object' && each !== null);

function isContext(value: Record<string, unknown>): boolean {
  const { fabric, device, rows, sessions, methods } = value;
  return (
    isText(fabric) &&
    isText(device) &&
    isWhole(rows) &&
    isList(sessions) &&
    sessions.every(
      ({ number, side, peer }) => isWhole(number) && (side === 'client' || side === 'server') && isText(peer),
    ) &&
    isList(methods) &&
    methods.every(({ id, name }) => isWhole(id) && isText(name))
  );
}

function isAbout(value: unknown): value is TraceAbout {
  if (typeof value !== 'object' || value === null) return false;
  const { pid, command, atNs, wallMs, reason, contexts } = value as Record<string, unknown>;
  return (
    [pid, atNs, wallMs].every(isWhole) &&
    isText(command) &&
    (reason === undefined || isText(reason)) &&
    isList(contexts) &&
    contexts.length <= contextsMax &&
    contexts.every(isContext)
  );
}

/**
 * Reads the contents of a file. A process that dies while it writes its trace leaves only the beginning,
 * whose complete events are read. Throws an Error with a sentence that continues the name of the file.
 */
export function traceIn(bytes: Uint8Array): Trace {
  const none = 'is not a trace of rdma-rpc';
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = head.toString('latin1', 0, Math.min(traceMagic.length, bytes.length));
  if (!traceMagic.startsWith(magic)) throw new Error(none);
  if (bytes.length < traceHeadBytes)
    throw new Error(
      `is cut off: it has ${bytes.length} bytes and no events; the process has died before it could write them`,
    );
  const version = head.readUInt32LE(8);
  if (version !== traceVersion)
    throw new Error(
      `is of version ${version} of traces; this rdma-rpc reads version ${traceVersion}; use the release of rdma-rpc that has written the file`,
    );
  const textBytes = head.readUInt32LE(12);
  const rowsAt = traceHeadBytes + textBytes;
  if (textBytes > textBytesMax) throw new Error(`${none}: a description of ${textBytes} bytes is too long`);
  if (rowsAt > bytes.length) throw new Error('is cut off: a part of its description is missing');
  let about: unknown;
  try {
    about = JSON.parse(head.toString('utf8', traceHeadBytes, rowsAt));
  } catch {
    throw new Error(`${none}: its description is not JSON`);
  }
  if (!isAbout(about)) throw new Error(`${none}: its description is not that of a trace`);
  const rows: Uint8Array[] = [];
  const contexts: TraceContext[] = [];
  let at = rowsAt;
  let missing = 0;
  for (const context of about.contexts) {
    const count = Math.min(context.rows, Math.floor((bytes.length - at) / eventRowBytes));
    const end = at + count * eventRowBytes;
    rows.push(bytes.subarray(at, end));
    contexts.push({ ...context, rows: count });
    missing += context.rows - count;
    at = end;
  }
  return { about: { ...about, contexts }, rows, missing };
}

/** Reads a trace file. Throws an Error whose message can be shown to the user. */
export function readTrace(path: string): Trace {
  // The file is opened without blocking, because opening a pipe without a writer would wait for a writer.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) throw new Error(`${path} is not a file`);
    if (stat.size > fileBytesMax) throw new Error(`${path} is not a trace of rdma-rpc: it is too large`);
    const bytes = new Uint8Array(stat.size);
    let length = 0;
    for (let count = -1; length < bytes.length && count !== 0; length += count)
      count = readSync(file, bytes, length, bytes.length - length, length);
    try {
      return traceIn(bytes.subarray(0, length));
    } catch (cause) {
      throw new Error(`${path} ${(cause as Error).message}`, { cause });
    }
  } finally {
    closeSync(file);
  }
}
