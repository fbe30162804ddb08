/**
 * The text output of `rdma-rpc perf`: perftest's columns with their names and order, followed by the
 * processor time of both sides.
 */
import { isLatency } from './plan.ts';
import type { Cpu, Row } from './row.ts';
import type { PeerRows, Tested } from './tested.ts';

interface Column {
  readonly name: string;
  readonly value: (row: Row) => string;
}

const fixed =
  (digits: number, of: (row: Row) => number | null | undefined) =>
  (row: Row): string =>
    (of(row) ?? 0).toFixed(digits);

const front: readonly Column[] = [
  { name: '#bytes', value: (row) => String(row.bytes) },
  { name: '#iterations', value: (row) => String(row.messages) },
];

const latencyColumns: readonly Column[] = [
  { name: 't_min[usec]', value: fixed(2, ({ latencyUs }) => latencyUs?.min) },
  { name: 't_max[usec]', value: fixed(2, ({ latencyUs }) => latencyUs?.max) },
  { name: 't_typical[usec]', value: fixed(2, ({ latencyUs }) => latencyUs?.typical) },
  { name: 't_avg[usec]', value: fixed(2, ({ latencyUs }) => latencyUs?.average) },
  { name: 't_stdev[usec]', value: fixed(2, ({ latencyUs }) => latencyUs?.stdev) },
  { name: '99% percentile[usec]', value: fixed(2, ({ latencyUs }) => latencyUs?.p99) },
  { name: '99.9% percentile[usec]', value: fixed(2, ({ latencyUs }) => latencyUs?.p99_9) },
];

/** In tests with a duration, no samples are kept. */
const meanColumns: readonly Column[] = [
  { name: 't_avg[usec]', value: fixed(2, ({ meanUs }) => meanUs) },
  { name: 'tps average', value: fixed(2, ({ messages, elapsedUs }) => (messages * 1e6) / elapsedUs) },
];

const mebibyte = 2 ** 20;
const gigabit = 1e9 / 8;

function bandwidthColumns(gbits: boolean): readonly Column[] {
  const unit = gbits ? 'Gb/sec' : 'MB/sec';
  const scaled = (bytes: number | null | undefined): number => (bytes ?? 0) / (gbits ? gigabit : mebibyte);
  return [
    { name: `BW peak[${unit}]`, value: fixed(2, ({ bandwidth }) => scaled(bandwidth?.peakBytesPerSecond)) },
    { name: `BW average[${unit}]`, value: fixed(2, ({ bandwidth }) => scaled(bandwidth?.bytesPerSecond)) },
    { name: 'MsgRate[Mpps]', value: fixed(6, ({ bandwidth }) => (bandwidth?.messagesPerSecond ?? 0) / 1e6) },
  ];
}

const used = ({ user, system }: Cpu): number => user + system;

function columnsOf({ test, role, options }: Tested, gbits: boolean): readonly Column[] {
  const own = role;
  const other = role === 'client' ? 'server' : 'client';
  const figures = !isLatency(test)
    ? bandwidthColumns(gbits)
    : options.durationMs === 0
      ? latencyColumns
      : meanColumns;
  return [
    ...front,
    ...figures,
    { name: 'CPU_Util[%]', value: fixed(1, ({ cpu }) => used(cpu[own])) },
    { name: 'peer CPU_Util[%]', value: fixed(1, ({ cpu }) => used(cpu[other])) },
    ...(options.connection === 'RC' || !test.startsWith('send')
      ? []
      : [{ name: '#received', value: (row: Row) => String(row.received ?? 0) }]),
  ];
}

function tableOf(columns: readonly Column[], rows: readonly Row[]): string[] {
  const cells = rows.map((row) => columns.map(({ value }) => value(row)));
  const widths = columns.map(({ name }, i) => Math.max(name.length, ...cells.map((line) => line[i]!.length)));
  const line = (texts: readonly string[]): string =>
    ` ${texts.map((text, i) => text.padEnd(widths[i]!)).join('  ')}`.trimEnd();
  return [line(columns.map(({ name }) => name)), ...cells.map(line)];
}

function head({ test, options }: Tested, { address, fabric, device, peerDevice }: PeerRows): string {
  const { connection, depth, queuePairs, bidirectional, events, validate } = options;
  const words = [
    `${fabric}, ${device} to ${peerDevice || '?'}`,
    connection,
    `${queuePairs} queue pair${queuePairs === 1 ? '' : 's'}`,
    ...(isLatency(test) ? [] : [`${depth} deep`]),
    ...(bidirectional ? ['both ways'] : []),
    events ? 'events' : 'polling',
    ...(validate ? ['validated'] : []),
  ];
  return `${test} with ${address}: ${words.join(', ')}`;
}

/** Returns lines with sums over several simultaneous peers. Latencies are not summed. */
function sumLines(tested: Tested, gbits: boolean): string[] {
  const { peers, test } = tested;
  if (peers.length === 1 || isLatency(test)) return [];
  const rows = peers[0]!.rows.map(({ bytes }, i) => {
    const all = peers.map((peer) => peer.rows[i]!);
    const sum = (of: (row: Row) => number): number => all.reduce((total, row) => total + of(row), 0);
    return {
      ...all[0]!,
      bytes,
      messages: sum(({ messages }) => messages),
      bandwidth: {
        bytesPerSecond: sum(({ bandwidth }) => bandwidth?.bytesPerSecond ?? 0),
        peakBytesPerSecond: null,
        messagesPerSecond: sum(({ bandwidth }) => bandwidth?.messagesPerSecond ?? 0),
      },
    };
  });
  const columns = columnsOf(tested, gbits).filter(({ name }) => !/CPU|peak/.test(name));
  return ['', `all ${peers.length} peers`, ...tableOf(columns, rows)];
}

export function validationText({ corrupt, peers }: Tested): string {
  const messages = peers.flatMap(({ rows }) => rows).reduce((sum, row) => sum + row.messages, 0);
  const first = peers.find(({ firstCorrupt }) => firstCorrupt !== '')?.firstCorrupt ?? 'seen by the peer';
  return `${corrupt} of ${messages} messages arrived with wrong bytes; the first: ${first}`;
}

export function testedText(tested: Tested, gbits: boolean): string {
  const columns = columnsOf(tested, gbits);
  return [
    ...tested.peers.flatMap((peer, i) => [
      ...(i === 0 ? [] : ['']),
      head(tested, peer),
      ...tableOf(columns, peer.rows),
    ]),
    ...sumLines(tested, gbits),
  ].join('\n');
}
