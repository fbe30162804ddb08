/**
 * The view of a process, as lines of text that fit the available width and height. Names of processes and of
 * their peers are untrusted, so they must not be able to control the terminal.
 */
import type { Stats } from '../../runtime/native/stats.ts';
import { size, time } from '../bench/summary.ts';
import type { MethodView, SessionView, View } from './view.ts';

/** The available width and height. When the width is Infinity, the whole line is shown. */
export interface Room {
  readonly columns: number;
  readonly rows: number;
}

const count = (value: number): string => {
  const units = ['', 'k', 'M', 'G', 'T'];
  const power = value < 10_000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(value) / 3));
  return power === 0
    ? Math.round(value).toLocaleString('en')
    : `${Number((value / 1000 ** power).toPrecision(3))}${units[power]}`;
};

/**
 * Returns one line that contains only characters with a width, without escapes and without marks that change
 * the direction of text.
 */
export function plain(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}\p{M}]/gu, '?');
}

/** Shortens the text at its beginning, because methods and addresses often begin alike. */
function fitted(text: string, width: number): string {
  const characters = [...plain(text)];
  return characters.length <= width
    ? text === ''
      ? ' '.repeat(width)
      : characters.join('').padEnd(width)
    : `…${characters.slice(characters.length - width + 1).join('')}`;
}

interface Column<Row> {
  readonly title: string;
  readonly width: number;
  readonly cell: (row: Row) => string;
}

const headLeast = 3;
const tablesLeast = 10;

const us = (value: number | null): string => (value === null ? '-' : time(value));

const methodColumns: readonly Column<MethodView>[] = [
  { title: 'SIDE', width: 7, cell: ({ side }) => side },
  { title: 'CALLS/S', width: 9, cell: ({ callsPerSecond }) => count(callsPerSecond) },
  { title: 'FAILED/S', width: 9, cell: ({ failedPerSecond }) => count(failedPerSecond) },
  { title: 'P50', width: 9, cell: ({ p50Us }) => us(p50Us) },
  { title: 'P99', width: 9, cell: ({ p99Us }) => us(p99Us) },
  { title: 'CALLS', width: 8, cell: ({ calls }) => count(calls) },
];

const sessionColumns: readonly Column<SessionView>[] = [
  { title: 'SIDE', width: 7, cell: ({ side }) => side },
  { title: 'FABRIC', width: 7, cell: ({ fabric }) => fabric },
  { title: 'CALLS', width: 6, cell: ({ callsInFlight }) => count(callsInFlight) },
  { title: 'CREDITS', width: 9, cell: ({ credits, creditsMax }) => `${credits}/${creditsMax}` },
  { title: 'WAIT', width: 5, cell: ({ waiting }) => count(waiting) },
  { title: 'IN/S', width: 9, cell: ({ inPerSecond }) => size(Math.round(inPerSecond)) },
  { title: 'OUT/S', width: 9, cell: ({ outPerSecond }) => size(Math.round(outPerSecond)) },
  { title: 'SECURITY', width: 8, cell: ({ security }) => security ?? '-' },
];

/** The first column gets the width that the other columns leave, or less if it needs less. */
function table<Row>(
  name: string,
  rows: readonly Row[],
  text: (row: Row) => string,
  columns: readonly Column<Row>[],
  { columns: width, rows: height }: Room,
  /** Total number of entries, whether or not each has a row. */
  all: number = rows.length,
): string[] {
  const rest = columns.reduce((sum, column) => sum + column.width + 1, 0);
  const longest = Math.max(...[name, ...rows.map(text)].map((each) => [...plain(each)].length));
  const first = Math.max(10, width === Number.POSITIVE_INFINITY ? longest : width - rest);
  const line = (head: string, cells: readonly string[]): string =>
    [fitted(head, first), ...cells.map((cell, place) => cell.padStart(columns[place]!.width))].join(' ');
  const shown = all <= height - 1 ? rows : rows.slice(0, Math.max(0, height - 2));
  const left = Math.max(all, rows.length) - shown.length;
  return [
    line(
      name,
      columns.map(({ title }) => title),
    ),
    ...shown.map((row) =>
      line(
        text(row),
        columns.map(({ cell }) => cell(row)),
      ),
    ),
    ...(left > 0 ? [`… ${left} more`] : []),
    ...(all === 0 && rows.length === 0 ? ['none yet'] : []),
  ].slice(0, Math.max(0, height));
}

const states: Readonly<Record<string, string>> = { T: 'STOPPED', t: 'TRACED', Z: 'ENDED' };

function threadText({ contexts, state }: View): string {
  const stopped = states[state];
  if (stopped !== undefined) return stopped;
  const blocked = Math.max(0, ...contexts.map(({ blockedMs }) => blockedMs));
  const lag = Math.max(0, ...contexts.map(({ lagMaxMs }) => lagMaxMs));
  return blocked > 0 ? `EVENT LOOP BLOCKED for ${time(blocked * 1000)}` : `loop lag ${time(lag * 1000)}`;
}

/** Returns lines with the error counters of devices that have grown between the two readings. */
function deviceLines({ devices }: View): string[] {
  const each = devices.flatMap(({ device, port, perSecond }) =>
    Object.entries(perSecond).map(
      ([name, rate]) => `${device}${port === 0 ? '' : `/${port}`} ${name} ${count(rate)}/s`,
    ),
  );
  return each.length === 0 ? [] : [`device     ${each.join('   ')}`];
}

function headLines(view: View, note: string): string[] {
  const per = (name: keyof Stats): string => count(view.perSecond[name] ?? 0);
  const bytesPer = (name: keyof Stats): string => `${size(Math.round(view.perSecond[name] ?? 0))}/s`;
  const now = (name: keyof Stats): number => view.counters[name] ?? 0;
  const sum = (list: readonly number[]): number => list.reduce((all, each) => all + each, 0);
  const hits = now('mrHits') + now('mrMisses');
  const fabrics = new Map<string, number>();
  for (const { fabric, device } of view.contexts) {
    const name = fabric === device || device === '' ? fabric : `${fabric} (${device})`;
    fabrics.set(name, (fabrics.get(name) ?? 0) + 1);
  }
  const fabric = [...fabrics].map(([name, times]) => (times === 1 ? name : `${name} x ${times}`)).join(', ');
  return [
    `rdma-rpc top   ${view.pid} ${note === '' ? '' : `(${note}) `}${view.command}`,
    `thread     ${threadText(view)}   cpu ${Math.round(view.cpuPercent)} %   memory ${size(view.rssBytes)}   fabric ${fabric}`,
    `calls      out ${per('calls')}/s   in ${per('requests')}/s   in flight ${sum(view.sessions.map(({ callsInFlight }) => callsInFlight))}   held ${count(now('callsPendingRelease'))}   retries ${per('retries')}/s   late ${per('lateResponses')}/s`,
    `frames     out ${bytesPer('sentBytes')}   in ${bytesPer('receivedBytes')}   inline ${per('inlineSends')}/s   eager ${per('eagerSends')}/s   bulk ${count((view.perSecond.bulkRequests ?? 0) + (view.perSecond.bulkResponses ?? 0) + (view.perSecond.bulkReads ?? 0) + (view.perSecond.bulkWrites ?? 0))}/s`,
    `bulk       read ${bytesPer('bulkReadBytes')}   written ${bytesPer('bulkWriteBytes')}   reply buffers foreseen ${per('replyBuffersPredicted')}/s, asked for ${per('replyBuffersAsked')}/s`,
    `streams    messages out ${per('streamMessagesSent')}/s   in ${per('streamMessagesReceived')}/s`,
    `credits    frames ${per('creditFrames')}/s   stalls ${per('stalls')}/s, ${per('stalledMs')} ms/s   waiting ${sum(view.sessions.map(({ waiting }) => waiting))}   send slots free ${count(now('sendSlotsFree'))}`,
    `memory     of devices ${size(now('memoryBytes'))}   arena ${size(now('arenaLeasedBytes'))} of ${size(now('arenaBytes'))} in ${count(now('arenaLeasedBlocks'))} blocks   calls wait ${count(now('memoryWaiters'))}`,
    `cache      ${size(now('mrBytes'))} registered   hits ${hits === 0 ? '-' : `${Math.floor((100 * now('mrHits')) / hits)} %`}   evicted ${per('mrEvictions')}/s`,
    `queue      completions ${per('completions')}/s   turns ${per('turns')}/s   batches ${per('batches')}/s   sleeps ${per('sleeps')}/s   protocol errors ${count(now('protocolErrors'))}`,
    ...deviceLines(view),
  ];
}

/** Returns the lines of the screen. `note` names what the user waits for, if anything. */
export function screenOf(view: View, room: Room, note = ''): string[] {
  // When space is limited, the tables are more important than the last lines of the head.
  const head = headLines(view, note).slice(0, Math.max(headLeast, room.rows - tablesLeast));
  const left = Math.max(0, room.rows - head.length - 2);
  // Rows that one table does not need go to the other table.
  const sessions = Math.max(view.sessions.length, view.counters.sessions ?? 0);
  const wanted = Math.min(sessions + 1, Math.max(2, Math.ceil(left / 2)));
  const methodRows = Math.min(Math.max(1, view.methods.length) + 1, Math.max(0, left - wanted));
  const sessionRows = Math.max(0, left - methodRows);
  const lines = [
    ...head,
    '',
    ...table('METHOD', view.methods, ({ method }) => method, methodColumns, {
      columns: room.columns,
      rows: methodRows,
    }),
    '',
    ...table(
      'SESSION WITH',
      view.sessions,
      ({ peer }) => peer,
      sessionColumns,
      { columns: room.columns, rows: sessionRows },
      sessions,
    ),
  ];
  return lines.slice(0, room.rows).map((line) => [...plain(line)].slice(0, room.columns).join('').trimEnd());
}
