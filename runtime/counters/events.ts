/**
 * Reads the flight recorders of a process (native/telemetry/recorder.h) from its counters pages: the last
 * events of each session. The pages may change while they are read, or may be forged, so entries that may be
 * incomplete are omitted and positions are checked. `rdma-rpc trace` uses it.
 */
import { eventRowBytes } from '../native/event-row.ts';
import { type EventLayout, type EventsOf, eventsOf, frontBytesMax, isWhole } from './page.ts';
import { type OpenPage, orNone, pagesAndCommand, whyNoPage, withPage } from './processes.ts';

const u64Bytes = 8;

/** Events of one context, and the context that they belong to. */
export interface RecordedContext extends Omit<EventsOf, 'layout'> {
  /**
   * Entries of `eventRowBytes` each. The entries of one session are ordered from the oldest to the newest.
   */
  readonly rows: Uint8Array;
}

export interface RecordedProcess {
  readonly pid: number;
  /** The command line, for display. */
  readonly command: string;
  readonly contexts: readonly RecordedContext[];
}

function isEventLayout({ at, rings, rows, stride, countsAt }: EventLayout, pageBytes: number): boolean {
  return (
    [at, rings, rows, stride, countsAt].every(isWhole) &&
    stride === eventRowBytes &&
    rows > 0 &&
    rings > 0 &&
    countsAt + rings * u64Bytes <= pageBytes &&
    at + rings * rows * stride <= pageBytes
  );
}

/**
 * Returns the entries of one ring. `before` is the number of entries that had been written when the reading
 * began, and `after` the number when it ended. Entries that were written during the reading have replaced the
 * oldest entries. The entry that is just being written replaces another entry.
 */
export function rowsOfRing(ring: Uint8Array, before: number, after: number): Uint8Array {
  const rows = ring.length / eventRowBytes;
  const first = after < rows ? 0 : after - rows + 1;
  if (!isWhole(before) || !isWhole(after) || after < before || before <= first) return new Uint8Array();
  const [from, to] = [first % rows, before % rows].map((row) => row * eventRowBytes) as [number, number];
  if (from < to) return ring.slice(from, to);
  return new Uint8Array(Buffer.concat([ring.subarray(from), ring.subarray(0, to)]));
}

function recordedIn(page: OpenPage): RecordedContext | undefined {
  const events = eventsOf(page.read(0, Math.min(page.size, frontBytesMax)));
  if (events === undefined || !isEventLayout(events.layout, page.size)) return undefined;
  const { layout, ...whose } = events;
  const { at, rings, rows, countsAt } = layout;
  const counts = (): number[] => {
    const words = new DataView(page.read(countsAt, rings * u64Bytes).buffer);
    return Array.from({ length: rings }, (_, ring) => Number(words.getBigUint64(ring * u64Bytes, true)));
  };
  const before = counts();
  const all = before.map((count, ring) =>
    count === 0
      ? new Uint8Array()
      : page.read(at + ring * rows * eventRowBytes, Math.min(count, rows) * eventRowBytes),
  );
  const after = counts();
  const parts = all.map((bytes, ring) => {
    const whole = new Uint8Array(rows * eventRowBytes);
    whole.set(bytes);
    return rowsOfRing(whole, before[ring]!, after[ring]!);
  });
  return { ...whose, rows: new Uint8Array(Buffer.concat(parts)) };
}

/**
 * Throws an Error with an explanation when the process does not exist, cannot be read, or has no flight
 * recorder.
 */
export function readEvents(pid: number): RecordedProcess {
  const { pages, command } = pagesAndCommand(pid);
  const contexts = pages
    .map((path) => orNone(() => withPage(path, recordedIn)))
    .filter((context) => context !== undefined);
  if (contexts.length === 0) throw new Error(whyNoPage(pid, pages));
  return { pid, command, contexts };
}
