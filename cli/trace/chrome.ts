/**
 * Events of `rdma-rpc trace` in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open. Each
 * session has a row, calls are spans from request to end, and all other events are instants.
 */
import type { TraceAbout } from '../../runtime/boundary/traces/trace-file.ts';
import type { TraceEvent } from './events.ts';
import { sessionText } from './text.ts';

interface ChromeEvent {
  readonly name: string;
  /** M: metadata; b and e: the two ends of a span; i: an instant. */
  readonly ph: 'M' | 'b' | 'e' | 'i';
  readonly pid: number;
  readonly tid: number;
  /** The time in microseconds. */
  readonly ts?: number;
  readonly cat?: string;
  readonly id?: string;
  readonly s?: 't';
  readonly args?: Readonly<Record<string, unknown>>;
}

export function chromeTrace(about: TraceAbout, events: readonly TraceEvent[]): object {
  const { pid } = about;
  const start = events[0]?.atNs ?? 0;
  const us = (atNs: number): number => (atNs - start) / 1000;
  // Sessions of two contexts may have the same number.
  const keyOf = ({ context, session }: TraceEvent): string => `${context} ${session}`;
  const rows = new Map<string, { tid: number; context: number; session: number }>();
  for (const event of events) {
    const { context, session } = event;
    if (!rows.has(keyOf(event))) rows.set(keyOf(event), { tid: rows.size + 1, context, session });
  }
  const all: ChromeEvent[] = [
    { name: 'process_name', ph: 'M', pid, tid: 0, args: { name: about.command } },
    ...[...rows.values()].map(({ tid, context, session }): ChromeEvent => {
      return {
        name: 'thread_name',
        ph: 'M',
        pid,
        tid,
        args: { name: sessionText(about.contexts[context]!, session) },
      };
    }),
  ];
  /** Calls whose request was seen, but whose end was not seen. */
  const open = new Map<string, ChromeEvent>();
  for (const event of events) {
    const { atNs, context: _, session, kind, ...fields } = event;
    const { tid } = rows.get(keyOf(event))!;
    const id = `${tid}:${event.call}`;
    const span = { name: event.method ?? 'call', cat: 'call', pid, tid, id } as const;
    if (event.frame === 'request') {
      open.set(id, { ...span, ph: 'b', ts: us(atNs), args: { call: event.call, bytes: event.bytes } });
    }
    if (kind === 'settle') {
      open.delete(id);
      const from = us(atNs - event.tookUs! * 1000);
      all.push({ ...span, ph: 'b', ts: from, args: { call: event.call } });
      all.push({ ...span, ph: 'e', ts: us(atNs), args: { good: event.good } });
      continue;
    }
    const name = event.frame === undefined ? kind : `${kind === 'frame-in' ? 'in' : 'out'} ${event.frame}`;
    all.push({ name, cat: kind, ph: 'i', s: 't', pid, tid, ts: us(atNs), args: fields });
  }
  // Spans without an end extend to the end of the trace.
  for (const begun of open.values()) all.push(begun);
  const otherData = {
    command: about.command,
    ...(about.reason === undefined ? {} : { reason: about.reason }),
    start: new Date(about.wallMs - (about.atNs - start) / 1e6).getTime() || 0,
  };
  return { traceEvents: all, displayTimeUnit: 'ns', otherData };
}
