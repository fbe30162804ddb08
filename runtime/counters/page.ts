/**
 * What lies in a counters page (native/telemetry/counters_page.h): bytes in, numbers and names out. The page says itself where what is, so this reads pages of
 * other versions, too. Read from another process, it may be cut, old or not of this kind: nothing of it is trusted. Used by processes.ts.
 */
import type { Stats } from '../native-stats.ts';

/** A method as calls of it were counted on one side. Times are of the call as this side sees it. */
export interface MethodCounters {
  /** `package.Service/Method`; where nobody has named it, its id. */
  readonly name: string;
  readonly side: 'client' | 'server';
  readonly calls: number;
  readonly failed: number;
  readonly totalNs: number;
  /** Calls by how long they took; `bucketNs` has the bounds. */
  readonly buckets: readonly number[];
}

export interface SessionCounters {
  readonly state: 'connecting' | 'ready' | 'ending';
  readonly side: 'client' | 'server';
  readonly number: number;
  /** Who the other side is, for people; it has said some of that itself. */
  readonly peer: string;
  readonly callsInFlight: number;
  readonly credits: number;
  readonly creditsMax: number;
  /** Frames that wait for credits, or for room. */
  readonly waiting: number;
  readonly framesIn: number;
  readonly framesOut: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly stalls: number;
  readonly stalledMs: number;
}

/** One context: a thread's use of one fabric. */
export interface ContextCounters {
  readonly fabric: string;
  readonly device: string;
  /** Of the thread: when its last turn was, on the clock of `process.hrtime`; awake it looks for completions all the time. */
  readonly turnNs: number;
  readonly awake: boolean;
  /** As `stats()` has them; older or newer versions may have others. */
  readonly counters: Readonly<Partial<Stats>>;
  readonly sessions: readonly SessionCounters[];
  readonly methods: readonly MethodCounters[];
  /** Upper bounds of the buckets of `methods`, in nanoseconds; the last one takes all that is longer. */
  readonly bucketNs: readonly number[];
}

const magic = 'rdmacntr';
const version = 1;
const threadAt = 16;
const textAt = 64;
/** A page that claims to be larger is none. */
export const pageBytesMax = 16 * 1024 * 1024;
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
interface Layout {
  readonly fabric: string;
  readonly device: string;
  readonly counters: { readonly at: number; readonly names: readonly string[] };
  readonly sessions: Table;
  readonly methods: MethodTable;
}

/** Throws a RangeError for what lies outside of the bytes, as DataView does. */
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

  /** The rows of a table whose first field is not 0. */
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

/** Upper bounds: the first is of calls below one unit of time, then so many per power of two. */
function bounds({ buckets, perOctave, unitNs }: MethodTable): number[] {
  return Array.from({ length: buckets }, (_, bucket) => {
    const [octave, part] = [Math.floor((bucket - 1) / perOctave), (bucket - 1) % perOctave];
    return bucket === 0 ? unitNs : unitNs * 2 ** octave * (1 + (part + 1) / perOctave);
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

/** Undefined: these bytes are no counters page, or one that is not ready. */
export function contextIn(bytes: Uint8Array): ContextCounters | undefined {
  try {
    const words = new Words(bytes);
    if (words.text(0, magic.length) !== magic || words.u32(magic.length) !== version) return undefined;
    const { fabric, device, counters, sessions, methods } = JSON.parse(
      words.text(textAt, words.u32(magic.length + 4)),
    ) as Layout;
    if (methods.buckets > 4096 || sessions.rows > 4096 || methods.rows > 4096) return undefined;
    return {
      fabric: String(fabric),
      device: String(device),
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
