/**
 * Events of `rdma-rpc trace` as lines of text. Each line begins with the wall-clock time and the time since
 * the previous event.
 */
import type { TraceAbout, TraceContext } from '../../runtime/boundary/traces/trace-file.ts';
import { printableLine } from '../output.ts';
import type { TraceEvent } from './events.ts';

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`;

function what(event: TraceEvent): string {
  const { kind, frame, call, method, status, bytes, credits, flags, key, requests, of } = event;
  const where = key === undefined ? '' : `key 0x${key.toString(16)}`;
  const parts: (string | undefined)[] = [];
  switch (kind) {
    case 'frame-in':
    case 'frame-out':
      parts.push(frame, call, method, status, `${bytes} B`, flags?.join(','));
      if (credits !== undefined) parts.push(`+${count(credits, 'credit')}`);
      break;
    case 'post':
      parts.push(requests === of ? count(of!, 'request') : `${requests} of ${count(of!, 'request')}`);
      break;
    case 'completion':
      parts.push(`#${requests}`, status === 'success' ? undefined : status);
      break;
    case 'settle':
      parts.push(call, method, event.good === true ? 'good' : 'failed', `${event.tookUs!.toFixed(1)} us`);
      break;
    case 'state':
      parts.push(event.state);
      break;
    case 'ended':
      parts.push(event.reason);
      break;
    default:
      parts.push(`${bytes} B`, where);
  }
  return parts.filter((part) => part !== undefined).join('  ');
}

/** Returns `session 16384 (client, shm, of HOST)`, or the known part of it. */
export function sessionText({ sessions, fabric }: TraceContext, session: number): string {
  const known = sessions.find(({ number }) => number === session);
  const words = known === undefined ? [fabric] : [known.side, fabric, known.peer];
  return `session ${session} (${words.filter((word) => word !== '').join(', ')})`;
}

const arrows: Partial<Record<TraceEvent['kind'], string>> = { 'frame-in': '<-', 'frame-out': '->' };

export function* textOf(about: TraceAbout, events: readonly TraceEvent[]): Generator<string> {
  yield printableLine(`process ${about.pid}  ${about.command}`);
  if (about.reason !== undefined) yield printableLine(`written because: ${about.reason}`);
  for (const [context, each] of about.contexts.entries()) {
    const sessions = new Set(
      events.filter((event) => event.context === context).map(({ session }) => session),
    );
    for (const session of sessions) yield printableLine(sessionText(each, session));
  }
  yield count(events.length, 'event');
  let before: number | undefined;
  for (const event of events) {
    const wall = new Date(about.wallMs - (about.atNs - event.atNs) / 1e6);
    const time = Number.isNaN(wall.getTime()) ? '?' : wall.toISOString().slice(11, 23);
    const since = before === undefined ? '' : `+${((event.atNs - before) / 1000).toFixed(1)}`;
    before = event.atNs;
    const kind = `${arrows[event.kind] ?? '  '} ${event.kind.replace(/^frame-.*/, 'frame').padEnd(10)}`;
    yield printableLine(
      `${time} ${since.padStart(12)} us  ${String(event.session).padEnd(6)} ${kind} ${what(event)}`,
    );
  }
}
