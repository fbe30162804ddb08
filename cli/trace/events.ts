/**
 * Converts entries of the flight recorder (native/telemetry/protocol_event.h) to events for display and for
 * programs. `rdma-rpc trace --json` prints them.
 */

import { statusName } from '../../runtime/core/errors/status.ts';
import { eventMethodAt, eventRowBytes } from '../../runtime/native/event-row.ts';
import { pullMethod, pushMethod } from '../../runtime/stream/part-header.ts';
import type { Trace } from './file.ts';

export const kinds = [
  'frame-in',
  'frame-out',
  'post',
  'completion',
  'grant',
  'read',
  'write',
  'settle',
  'state',
  'ended',
] as const;
export type Kind = (typeof kinds)[number];

/** An event. Fields that its kind does not have are absent. */
export interface TraceEvent {
  /** Time of the event-loop iteration of the event, in nanoseconds on the clock of `process.hrtime`. */
  readonly atNs: number;
  /** Index in the list of contexts. */
  readonly context: number;
  readonly session: number;
  readonly kind: Kind;
  readonly frame?: string;
  /** `slot.generation`, which is unique among the calls of a session for a long time. */
  readonly call?: string;
  readonly method?: string;
  /** The status of the response or of the completion. */
  readonly status?: string;
  readonly bytes?: number;
  /** Credits that the frame grants to its receiver. */
  readonly credits?: number;
  readonly flags?: readonly string[];
  readonly key?: number;
  /**
   * For `post`: number of requests that the device accepted, out of `of`. For `completion`: number of
   * requests that this session had prepared up to the completed request.
   */
  readonly requests?: number;
  readonly of?: number;
  readonly good?: boolean;
  readonly tookUs?: number;
  readonly state?: string;
  readonly reason?: string;
}

const textKind = 11;
const textAt = 16;
const unitNs = 256;
const slotBits = 12;
const frames = [
  '',
  'request',
  'response',
  'cancel',
  'credit',
  'reply-buffer-request',
  'reply-buffer',
  'segment',
];
const flagNames = ['reply-buffer', 'metadata', 'gather', 'written', 'not-run', 'lasting', 'part', 'aligned'];
const states = ['new', 'connecting', 'ready', 'draining', 'down'];
/** The statuses of fabric::WcStatus, by number. */
const completions = [
  'success',
  'loc_len_err',
  'loc_qp_op_err',
  'loc_prot_err',
  'wr_flush_err',
  'mw_bind_err',
  'rem_inv_req_err',
  'rem_access_err',
  'retry_exc_err',
  'rnr_retry_exc_err',
  'rem_abort_err',
  'general_err',
];
const named = (names: readonly string[], number: number): string => names[number] || `(${number})`;

/** Names of methods by id, and the methods of calls in flight. */
interface Known {
  readonly methods: ReadonlyMap<number, string>;
  readonly calls: Map<string, string>;
}

type Fields = Omit<TraceEvent, 'atNs' | 'context' | 'session' | 'kind'>;

function frameFields(row: DataView, session: number, { methods, calls }: Known): Fields {
  const [type, flags, word] = [row.getUint8(13), row.getUint8(14), row.getUint32(16, true)];
  const value = row.getUint32(eventMethodAt, true);
  const frame = named(frames, type);
  const credits = row.getUint32(28, true);
  const base = {
    frame,
    bytes: row.getUint32(24, true),
    ...(credits === 0 ? {} : { credits }),
    ...(flags === 0 ? {} : { flags: flagNames.filter((_, bit) => (flags & (1 << bit)) !== 0) }),
  };
  if (frame === 'credit') return base;
  const call = callOf(word);
  const key = `${session} ${call}`;
  if (frame === 'request') calls.set(key, methodOf(methods, value));
  const method = calls.get(key);
  const ofCall = { ...base, call, ...(method === undefined ? {} : { method }) };
  if (frame === 'response') calls.delete(key);
  if (frame !== 'response' && frame !== 'cancel') return ofCall;
  return { ...ofCall, status: statusName(value) };
}

const callOf = (word: number): string => `${word & ((1 << slotBits) - 1)}.${word >>> slotBits}`;
/**
 * Returns the method of a stream's part (docs/wire/calls.md, section 8). Parts to a server do not name the
 * method.
 */
const methodOf = (methods: ReadonlyMap<number, string>, id: number): string =>
  methods.get(id) ??
  (id === pushMethod ? '(part to the server)' : methods.get(pullMethod(id))) ??
  `0x${id.toString(16).padStart(8, '0')}`;

function fieldsOf(kind: Kind, row: DataView, session: number, known: Known): Fields {
  const type = row.getUint8(13);
  const [word, method] = [row.getUint32(16, true), row.getUint32(eventMethodAt, true)];
  const [bytes, detail] = [row.getUint32(24, true), row.getUint32(28, true)];
  switch (kind) {
    case 'frame-in':
    case 'frame-out':
      return frameFields(row, session, known);
    case 'post':
      return { requests: detail, of: bytes };
    case 'completion':
      return { status: named(completions, type), requests: detail };
    case 'grant':
    case 'read':
    case 'write':
      return { bytes, key: detail };
    case 'settle':
      return {
        call: callOf(word),
        method: methodOf(known.methods, method),
        good: type !== 0,
        tookUs: (detail * unitNs) / 1000,
      };
    case 'state':
      return { state: named(states, type) };
    case 'ended':
      return { reason: '' };
  }
}

function eventsOfContext({ about, rows }: Trace, context: number): TraceEvent[] {
  const bytes = rows[context]!;
  const methods = new Map(
    about.contexts.flatMap((each) =>
      each.methods.filter(({ name }) => name !== '').map(({ id, name }) => [id, name]),
    ),
  );
  const known: Known = { methods, calls: new Map() };
  const events: TraceEvent[] = [];
  const last = new Map<number, number>();
  /** The reason given by a session that ends. */
  let reason: Buffer[] | undefined;
  const say = (): void => {
    if (reason === undefined) return;
    const text = Buffer.concat(reason).toString('utf8').replace(/\0+$/, '');
    events.push({ ...events.pop()!, reason: text });
    reason = undefined;
  };
  for (let at = 0; at + eventRowBytes <= bytes.length; at += eventRowBytes) {
    const row = new DataView(bytes.buffer, bytes.byteOffset + at, eventRowBytes);
    const number = row.getUint8(12);
    if (number === textKind) {
      reason?.push(Buffer.from(bytes.subarray(at + textAt, at + eventRowBytes)));
      continue;
    }
    say();
    const kind = kinds[number - 1];
    if (kind === undefined) continue;
    const session = row.getUint32(8, true);
    // The entries of a session are in order, but their times may not be, because an event-loop iteration may
    // use a time that was read earlier. Such a time is raised to that of the entry before it.
    const atNs = Math.max(Number(row.getBigUint64(0, true)), last.get(session) ?? 0);
    last.set(session, atNs);
    events.push({ atNs, context, session, kind, ...fieldsOf(kind, row, session, known) });
    if (kind === 'ended') reason = [];
  }
  say();
  return events;
}

/** Returns all events, ordered by time. */
export function eventsOfTrace(trace: Trace): TraceEvent[] {
  return trace.rows.flatMap((_, context) => eventsOfContext(trace, context)).sort((a, b) => a.atNs - b.atNs);
}
