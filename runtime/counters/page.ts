/**
 * Parses a counters page (native/telemetry/counters_page.h) into numbers and names. The page describes its
 * own layout, so pages of other versions can be read, too. A page read from another process may be truncated,
 * old or of another kind, so its contents are checked before they are used. processes.ts uses it.
 */
import type { Stats } from '../native/stats.ts';
import { type SecurityLevel, securityLevels } from '../security-levels.ts';

/** The calls of a method, counted on one side. Times are measured on this side. */
export interface MethodCounters {
  /** `package.Service/Method`, or the method's id when the page has no name for the method. */
  readonly name: string;
  readonly side: 'client' | 'server';
  readonly calls: number;
  readonly failed: number;
  readonly totalNs: number;
  /** Number of calls in each bucket of durations; `bucketNs` has the bounds. */
  readonly buckets: readonly number[];
}

export interface SessionCounters {
  readonly state: 'connecting' | 'ready' | 'ending';
  readonly side: 'client' | 'server';
  readonly number: number;
  /** Describes the other side, for display. Some of these facts come from the peer itself. */
  readonly peer: string;
  /**
   * The session's security, like `session.security` of a channel. It is undefined until the handshake is
   * complete, and in pages of older versions.
   */
  readonly security: SecurityLevel | undefined;
  readonly callsInFlight: number;
  readonly credits: number;
  readonly creditsMax: number;
  /** Number of frames that wait for credits, or for room in the send queue. */
  readonly waiting: number;
  readonly framesIn: number;
  readonly framesOut: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly stalls: number;
  readonly stalledMs: number;
}

/** The counters of one context, which is a thread's use of one fabric. */
export interface ContextCounters {
  /** A number that stays the same as long as the context is open and that is unique within a process. */
  readonly id: number;
  readonly fabric: string;
  readonly device: string;
  /**
   * State of the thread. `turnNs` is the time of its last event-loop iteration, on the clock of
   * `process.hrtime`; while awake the thread polls for completions.
   */
  readonly turnNs: number;
  readonly awake: boolean;
  /** The counters of `stats()`. Older or newer versions may have other counters. */
  readonly counters: Readonly<Partial<Stats>>;
  readonly sessions: readonly SessionCounters[];
  readonly methods: readonly MethodCounters[];
  /** Upper bounds of the buckets of `methods` in nanoseconds; the last bucket takes all longer calls. */
  readonly bucketNs: readonly number[];
}

const magic = 'rdmacntr';
/** The version of the pages that contextIn() and eventsOf() can read. */
export const pageVersion = 1;
/** Number of bytes that suffice for versionOf(). */
export const pageHeadBytes = 12;
const threadAt = 16;
const textAt = 64;
/** A page that claims to be larger is invalid. */
export const pageBytesMax = 16 * 1024 * 1024;
/** Counters, sessions and methods lie within this number of bytes from the beginning of a page. */
export const frontBytesMax = 1024 * 1024;
/** Size limit of the text that describes a page: the names of counters and fields. */
const textBytesMax = 64 * 1024;
const rowsMax = 4096;
const bucketsMax = 4096;
const octavesMax = 64;
const unitNsMax = 1e9;
const u64Bytes = 8;

interface Table {
  readonly at: number;
  readonly rows: number;
  readonly stride: number;
  readonly textAt: number;
  readonly textBytes: number;
  readonly fields: readonly string[];
}
interface MethodTable extends Table {
  readonly bucketsAt: number;
  readonly buckets: number;
  readonly perOctave: number;
  readonly unitNs: number;
}
/**
 * Rings of the flight recorder. They lie behind the part that is read for the counters, and exist only in
 * newer pages. events.ts checks them.
 */
export interface EventLayout {
  readonly at: number;
  readonly rings: number;
  readonly rows: number;
  readonly stride: number;
  readonly countsAt: number;
}
interface Layout {
  readonly fabric: string;
  readonly device: string;
  readonly counters: { readonly at: number; readonly names: readonly string[] };
  readonly sessions: Table;
  readonly methods: MethodTable;
  readonly events?: EventLayout;
}

/**
 * Reads numbers and texts of a page. Throws a RangeError for positions outside the bytes, as DataView does.
 */
class Words {
  readonly #view: DataView;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  u64(at: number): number {
    return Number(this.#view.getBigUint64(at, true));
  }

  u32(at: number): number {
    return this.#view.getUint32(at, true);
  }

  text(at: number, bytes: number): string {
    const all = this.#bytes.subarray(at, at + bytes);
    const end = all.indexOf(0);
    return new TextDecoder().decode(end === -1 ? all : all.subarray(0, end));
  }

  /** Iterates over the entries of a table whose first field is not 0. */
  *rows(table: Table): Generator<{ readonly at: number; readonly text: string; of(field: string): number }> {
    for (let row = 0; row < table.rows; ++row) {
      const at = table.at + row * table.stride;
      if (this.u64(at) === 0) continue;
      yield {
        at,
        text: this.text(at + table.textAt, table.textBytes),
        of: (field) => {
          const place = table.fields.indexOf(field);
          return place === -1 ? 0 : this.u64(at + place * u64Bytes);
        },
      };
    }
  }
}

export const isWhole = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;
const isNames = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((name) => typeof name === 'string' && /^[a-z]\w*$/i.test(name));

/** Checks that all entries lie inside the page, and that the fields of an entry lie inside the entry. */
function isTable(table: Table, pageBytes: number): boolean {
  const { at, rows, stride, textAt, textBytes, fields } = table;
  return (
    [at, rows, stride, textAt, textBytes].every(isWhole) &&
    isNames(fields) &&
    rows <= rowsMax &&
    stride >= Math.max(1, fields.length) * u64Bytes &&
    textAt + textBytes <= stride &&
    at + rows * stride <= pageBytes
  );
}

function isMethodTable(table: MethodTable, pageBytes: number): boolean {
  const { stride, bucketsAt, buckets, perOctave, unitNs } = table;
  return (
    isTable(table, pageBytes) &&
    [bucketsAt, buckets, perOctave, unitNs].every(isWhole) &&
    buckets <= bucketsMax &&
    bucketsAt + buckets * u64Bytes <= stride &&
    perOctave >= 1 &&
    buckets <= octavesMax * perOctave &&
    unitNs >= 1 &&
    unitNs <= unitNsMax
  );
}

function isLayout({ fabric, device, counters, sessions, methods }: Layout, pageBytes: number): boolean {
  return (
    typeof fabric === 'string' &&
    typeof device === 'string' &&
    isWhole(counters.at) &&
    isNames(counters.names) &&
    counters.at + counters.names.length * u64Bytes <= pageBytes &&
    isTable(sessions, pageBytes) &&
    isMethodTable(methods, pageBytes)
  );
}

/**
 * Returns the upper bounds of the buckets. The first bucket has the calls shorter than one unit; `perOctave`
 * buckets follow for each power of two. Each bucket is at least one unit wide. Below `perOctave` units, some
 * buckets would cover the same times as the previous bucket. Such buckets stay empty.
 */
function bounds({ buckets, perOctave, unitNs }: MethodTable): number[] {
  return Array.from({ length: buckets }, (_, bucket) => {
    if (bucket === 0) return unitNs;
    const [octave, part] = [Math.floor((bucket - 1) / perOctave), (bucket - 1) % perOctave];
    const from = Math.floor(2 ** octave * (1 + part / perOctave));
    return unitNs * (from + Math.max(1, 2 ** octave / perOctave));
  });
}

const states = ['connecting', 'connecting', 'ready', 'ending'] as const;
const sideOf = (client: number): 'client' | 'server' => (client === 0 ? 'server' : 'client');

function sessionsIn(words: Words, table: Table): SessionCounters[] {
  return [...words.rows(table)].map(({ text, of }) => ({
    state: states[of('state')] ?? 'ending',
    side: sideOf(of('client')),
    number: of('number'),
    peer: text,
    security: securityLevels[of('security') - 1],
    callsInFlight: of('inFlight'),
    credits: of('credits'),
    creditsMax: of('creditsMax'),
    waiting: of('waiting'),
    framesIn: of('framesIn'),
    framesOut: of('framesOut'),
    bytesIn: of('bytesIn'),
    bytesOut: of('bytesOut'),
    stalls: of('stalls'),
    stalledMs: Math.round(of('stalledNs') / 1e6),
  }));
}

function methodsIn(words: Words, table: MethodTable): MethodCounters[] {
  return [...words.rows(table)].map(({ at, text, of }) => ({
    name: text === '' ? `0x${of('id').toString(16).padStart(8, '0')}` : text,
    side: sideOf(of('client')),
    calls: of('calls'),
    failed: of('failed'),
    totalNs: of('totalNs'),
    buckets: Array.from({ length: table.buckets }, (_, bucket) =>
      words.u64(at + table.bucketsAt + bucket * u64Bytes),
    ),
  }));
}

/**
 * Returns the version of a counters page. Returns undefined when the bytes are not a counters page, or when
 * the page is not ready.
 */
export function versionOf(bytes: Uint8Array): number | undefined {
  const words = new Words(bytes);
  return words.text(0, magic.length) === magic ? words.u32(magic.length) : undefined;
}

/**
 * Reads the description of a page. Returns undefined, or throws, when the bytes are not a counters page, or
 * when the page is not ready.
 */
function pageIn(bytes: Uint8Array): { readonly words: Words; readonly layout: Layout } | undefined {
  if (versionOf(bytes) !== pageVersion) return undefined;
  const words = new Words(bytes);
  const textBytes = words.u32(magic.length + 4);
  if (textBytes > textBytesMax) return undefined;
  const layout = JSON.parse(words.text(textAt, textBytes)) as Layout;
  return isLayout(layout, bytes.length) ? { words, layout } : undefined;
}

/**
 * Returns undefined when the bytes are not a counters page, or when the page is not ready. The front part of
 * a page suffices.
 */
export function contextIn(bytes: Uint8Array, id: number): ContextCounters | undefined {
  try {
    const page = pageIn(bytes);
    if (page === undefined) return undefined;
    const { words, layout } = page;
    const { counters, sessions, methods } = layout;
    return {
      id,
      fabric: layout.fabric,
      device: layout.device,
      turnNs: words.u64(threadAt),
      awake: words.u64(threadAt + u64Bytes) !== 0,
      counters: Object.fromEntries(
        counters.names.map((name, place) => [name, words.u64(counters.at + place * u64Bytes)]),
      ),
      sessions: sessionsIn(words, sessions),
      methods: methodsIn(words, methods),
      bucketNs: bounds(methods),
    };
  } catch {
    return undefined;
  }
}

/** The context to which the events of a page belong, and the position of the events. */
export interface EventsOf {
  readonly fabric: string;
  readonly device: string;
  readonly sessions: readonly Pick<SessionCounters, 'number' | 'side' | 'peer'>[];
  readonly methods: readonly { readonly id: number; readonly name: string }[];
  readonly layout: EventLayout;
}

/** Returns undefined when the bytes are not a counters page, or when the page has no flight recorder. */
export function eventsOf(bytes: Uint8Array): EventsOf | undefined {
  try {
    const page = pageIn(bytes);
    if (page?.layout.events === undefined) return undefined;
    const { words, layout } = page;
    return {
      fabric: layout.fabric,
      device: layout.device,
      sessions: sessionsIn(words, layout.sessions).map(({ number, side, peer }) => ({ number, side, peer })),
      methods: [...words.rows(layout.methods)].map(({ text, of }) => ({ id: of('id'), name: text })),
      layout: page.layout.events,
    };
  } catch {
    return undefined;
  }
}
