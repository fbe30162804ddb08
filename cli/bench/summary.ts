/** The text output of `rdma-rpc bench`: counts, latencies, a histogram, and errors. */
import { printableLine } from '../output.ts';
import type { Latency, Result, Travelled } from './result.ts';

const number = (value: number, digits = 0): string =>
  value.toLocaleString('en', { maximumFractionDigits: digits });

/** Formats a time with three digits, in a suitable unit. */
export function time(us: number): string {
  if (us < 1000) return `${Number(us.toPrecision(3))} us`;
  if (us < 1e6) return `${Number((us / 1000).toPrecision(3))} ms`;
  return `${Number((us / 1e6).toPrecision(3))} s`;
}

export function size(bytes: number): string {
  const units = ['bytes', 'KB', 'MB', 'GB', 'TB'];
  const power = bytes < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${Number((bytes / 1000 ** power).toPrecision(3))} ${units[power]}`;
}

const barWidth = 40;
const linesMax = 20;

function histogramLines({ histogram, latencyUs }: Result): string[] {
  const which = latencyUs.corrected === null ? 'raw' : 'corrected';
  const together = Math.ceil(histogram.length / linesMax);
  const bars: { to: number; count: number }[] = [];
  for (const [i, bar] of histogram.entries()) {
    const count = bar[which] ?? 0;
    if (i % together === 0) bars.push({ to: bar.to, count });
    else bars.push({ to: bar.to, count: count + bars.pop()!.count });
  }
  const most = Math.max(1, ...bars.map(({ count }) => count));
  return bars.map(({ to, count }) => {
    const length = count === 0 ? 0 : Math.max(1, Math.round((barWidth * count) / most));
    return `  < ${time(to).padEnd(8)} ${number(count).padStart(11)} ${'∎'.repeat(length)}`.trimEnd();
  });
}

const rows: readonly [string, keyof Latency][] = [
  ['mean', 'mean'],
  ['p50', 'p50'],
  ['p90', 'p90'],
  ['p99', 'p99'],
  ['p99.9', 'p99_9'],
  ['p99.99', 'p99_99'],
  ['max', 'max'],
];

function latencyLines({ raw, corrected }: Result['latencyUs']): string[] {
  const cell = (text: string): string => text.padStart(12);
  if (corrected === null) return rows.map(([name, key]) => `  ${name.padEnd(8)}${cell(time(raw[key]))}`);
  return [
    `  ${''.padEnd(8)}${cell('raw')}${cell('corrected')}`,
    ...rows.map(([name, key]) => `  ${name.padEnd(8)}${cell(time(raw[key]))}${cell(time(corrected[key]))}`),
  ];
}

const share = (part: number, whole: number): string =>
  whole === 0 ? '0 %' : `${Number(((100 * part) / whole).toPrecision(3))} %`;

function travelledLines({ requests, responses, frames }: Travelled): string[] {
  const both = ({ bulk, sent }: { bulk: number; sent: number }): string =>
    `${number(sent)} in a SEND, ${number(bulk)} bulk (${share(bulk, bulk + sent)})`;
  return [
    `  requests   ${both(requests)}`,
    ...(responses === null ? [] : [`  responses  ${both(responses)}`]),
    `  own frames ${number(frames.inline)} inline, ${number(frames.eager)} eager (${share(frames.eager, frames.inline + frames.eager)})`,
  ];
}

export function loadText({ loop, concurrency, connections, schedule }: Result['load']): string {
  const workers = `${concurrency} worker${concurrency === 1 ? '' : 's'}, ${connections} connection${connections === 1 ? '' : 's'}`;
  if (loop === 'closed' || schedule === undefined) return `closed loop, ${workers}`;
  const { kind, start, step, end } = schedule;
  const to = end === undefined ? '' : ` to ${number(end)}`;
  const rate =
    kind === 'const'
      ? `${number(start)} calls/s`
      : `${number(start)}${to} calls/s by ${number(step ?? 0)} a ${kind === 'step' ? 'step' : 'second'}`;
  return `open loop, ${rate}, ${workers}`;
}

export function targetText({ address, method, protocol, fabric, device }: Result['target']): string {
  const at = device === undefined || device === fabric ? '' : ` (${device})`;
  return `${method} at ${address} over ${protocol === 'grpc' ? 'gRPC' : `${fabric ?? 'rdma-rpc'}${at}`}`;
}

/** Remarks on unusual figures. */
export function remarks({ calls, load, stopped }: Result): string[] {
  const found: string[] = [];
  if (stopped) found.push('The load was stopped before its end.');
  if (calls.late > 0)
    found.push(
      `${number(calls.late)} calls found all ${number(load.concurrency)} workers busy and began late (-c): the corrected latencies include their delay.`,
    );
  if (calls.unsent > 0)
    found.push(
      `${number(calls.unsent)} calls never began, because the server is slower than the rate. The corrected latencies include the time that they waited.`,
    );
  if (load.loop === 'closed')
    found.push(
      'A closed loop waits for slow answers and therefore measures fewer of them; use --rps to measure the latency that users see.',
    );
  return found;
}

export function summaryText(result: Result): string {
  const { calls, bytes, elapsedMs, callsPerSecond, latencyUs, travelled, codes, errors } = result;
  const counted = calls.ok + calls.failed;
  const skipped = calls.skipped === 0 ? '' : `, ${number(calls.skipped)} left out`;
  const lines = [
    targetText(result.target),
    loadText(result.load),
    '',
    `  calls      ${number(calls.ok)} OK, ${number(calls.failed)} failed${skipped} in ${time(elapsedMs * 1000)}`,
    `  rate       ${number(callsPerSecond, callsPerSecond < 100 ? 1 : 0)} calls/s`,
    `  bytes      ${size(bytes.requests)} out, ${size(bytes.responses)} in`,
    '',
    ...(result.histogram.length === 0
      ? ['Latency: none, because no call was answered with OK']
      : ['Latency:', ...latencyLines(latencyUs)]),
  ];
  if (result.histogram.length > 0)
    lines.push(
      '',
      latencyUs.corrected === null ? 'Histogram:' : 'Histogram, corrected:',
      ...histogramLines(result),
    );
  if (travelled !== null) lines.push('', 'How the messages were transferred:', ...travelledLines(travelled));
  if (calls.failed > 0) {
    lines.push('', 'Codes:');
    for (const [code, count] of Object.entries(codes))
      lines.push(`  ${code.padEnd(20)} ${number(count).padStart(11)}  ${share(count, counted)}`);
    lines.push('', 'Errors:');
    for (const { code, message, count } of errors)
      lines.push(printableLine(`  ${number(count).padStart(9)}  ${code}: ${message}`));
  }
  const said = remarks(result);
  if (said.length > 0) lines.push('', ...said);
  return lines.join('\n');
}
