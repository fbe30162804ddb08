/**
 * The report of `rdma-rpc bench` as a single self-contained page: figures as HTML, plots by uPlot, whose
 * source is included, and the result as JSON.
 */
import { readFileSync } from 'node:fs';
import { drawCharts } from './page-charts.ts';
import { style } from './page-style.ts';
import type { Latency, Result } from './result.ts';
import { loadText, remarks, size, targetText, time } from './summary.ts';

/** Escapes text between tags, and in attributes. */
const html = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

/** Escapes a value inside a script, so that it cannot end the script. */
const script = (value: unknown): string => JSON.stringify(value).replaceAll('<', '\\u003c');

const number = (value: number): string => value.toLocaleString('en', { maximumFractionDigits: 1 });

/**
 * The library is beside the compiled modules. It is found from dist/bundle in an installed package, and
 * through dist when the sources run directly.
 */
function vendored(name: string): string {
  const beside = new URL(`../../vendor/${name}`, import.meta.url);
  const built = new URL(`../../dist/vendor/${name}`, import.meta.url);
  try {
    return readFileSync(beside, 'utf8');
  } catch {
    return readFileSync(built, 'utf8');
  }
}

/**
 * Formats a latency. When no call was answered, the text says so, because a latency of 0 would be wrong.
 */
const timeIn =
  ({ histogram }: Result) =>
  (us: number): string =>
    histogram.length === 0 ? '–' : time(us);

function tiles(result: Result): string {
  const { calls, callsPerSecond, elapsedMs, latencyUs, bytes } = result;
  const latency = latencyUs.corrected ?? latencyUs.raw;
  const timeOf = timeIn(result);
  const tile = (name: string, value: string, note = '', kind = ''): string =>
    `<div class="tile ${kind}"><b>${html(value)}</b><span>${html(name)}</span><small>${html(note)}</small></div>`;
  const which = latencyUs.corrected === null ? '' : 'corrected';
  return [
    tile('calls per second', number(Math.round(callsPerSecond))),
    tile('calls', number(calls.ok + calls.failed), `in ${time(elapsedMs * 1000)}`),
    tile('failed', number(calls.failed), '', calls.failed > 0 ? 'bad' : 'good'),
    tile('median', timeOf(latency.p50), which),
    tile('p99', timeOf(latency.p99), which),
    tile('p99.9', timeOf(latency.p99_9), which),
    tile('out and in', `${size(bytes.requests)}`, `${size(bytes.responses)} in`),
  ].join('\n');
}

const latencies: readonly [string, keyof Latency][] = [
  ['min', 'min'],
  ['mean', 'mean'],
  ['p50', 'p50'],
  ['p75', 'p75'],
  ['p90', 'p90'],
  ['p95', 'p95'],
  ['p99', 'p99'],
  ['p99.9', 'p99_9'],
  ['p99.99', 'p99_99'],
  ['max', 'max'],
];

function latencyTable(result: Result): string {
  const { raw, corrected } = result.latencyUs;
  const timeOf = timeIn(result);
  const head = corrected === null ? '<th>latency</th>' : '<th>raw</th><th>corrected</th>';
  const rows = latencies.map(([name, key]) => {
    const second = corrected === null ? '' : `<td>${timeOf(corrected[key])}</td>`;
    return `<tr><th>${name}</th><td>${timeOf(raw[key])}</td>${second}</tr>`;
  });
  return `<table><tr><th></th>${head}</tr>${rows.join('')}</table>`;
}

interface Part {
  readonly name: string;
  readonly count: number;
  readonly kind: string;
}

function stacked(title: string, parts: readonly Part[]): string {
  const all = parts.reduce((sum, { count }) => sum + count, 0);
  if (all === 0) return '';
  const share = ({ count }: Part): string => `${Number(((100 * count) / all).toPrecision(3))} %`;
  const bars = parts.filter(({ count }) => count > 0);
  return [
    `<h3>${title}</h3><div class="stack">`,
    ...bars.map((part) => `<i class="${part.kind}" style="flex-grow:${part.count / all}"></i>`),
    '</div><p class="key">',
    ...parts.map(
      (part) =>
        `<span><i class="${part.kind}"></i>${part.name} ${number(part.count)} (${share(part)})</span>`,
    ),
    '</p>',
  ].join('');
}

function travelledSection({ travelled, target }: Result): string {
  if (travelled === null)
    return target.protocol === 'grpc'
      ? '<p>Over gRPC: every message is sent in HTTP/2 frames.</p>'
      : '<p>Not known.</p>';
  const { requests, responses, frames } = travelled;
  const messages = ({ sent, bulk }: { sent: number; bulk: number }): Part[] => [
    { name: 'along with a SEND', count: sent, kind: 'raw' },
    { name: 'bulk', count: bulk, kind: 'corrected' },
  ];
  return [
    stacked('Requests', messages(requests)),
    responses === null ? '' : stacked('Responses', messages(responses)),
    stacked('Frames of this side', [
      { name: 'inline', count: frames.inline, kind: 'raw' },
      { name: 'eager, from a slot', count: frames.eager, kind: 'third' },
    ]),
    '<p class="note">Bulk messages are READ from, or WRITTEN to, memory of the client by the server; <code>rdma-rpc explain</code> says why.</p>',
  ].join('');
}

function errorSection({ codes, errors, calls }: Result): string {
  const counted = Math.max(1, calls.ok + calls.failed);
  const rows = Object.entries(codes).map(
    ([code, count]) =>
      `<tr><th>${html(code)}</th><td>${number(count)}</td><td>${Number(((100 * count) / counted).toPrecision(3))} %</td></tr>`,
  );
  const said = errors.map(
    ({ code, message, count }) =>
      `<tr><td>${number(count)}</td><th>${html(code)}</th><td class="text">${html(message)}</td></tr>`,
  );
  return [
    `<table><tr><th>code</th><th>calls</th><th>share</th></tr>${rows.join('')}</table>`,
    said.length === 0
      ? ''
      : `<h3>Messages</h3><table><tr><th>calls</th><th>code</th><th class="text">message</th></tr>${said.join('')}</table>`,
  ].join('');
}

const section = (title: string, content: string, wide = false): string =>
  `<section${wide ? ' class="wide"' : ''}><h2>${title}</h2>${content}</section>`;
const plot = (title: string, id: string): string => section(title, `<div class="plot" id="${id}"></div>`);

export function pageOf(result: Result): string {
  const said = remarks(result);
  const over = result.latencyUs.corrected === null ? '' : ', corrected';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>rdma-rpc bench: ${html(result.target.method)}</title>
<style>${vendored('uplot.css')}
${style}</style>
</head>
<body>
<header>
<h1>${html(targetText(result.target))}</h1>
<p>${html(loadText(result.load))} · ${html(result.startedAt.replace('T', ' ').replace(/\.\d+Z$/, ' UTC'))}</p>
</header>
<main>
<div class="tiles">${tiles(result)}</div>
${said.length === 0 ? '' : `<aside>${said.map((each) => `<p>${html(each)}</p>`).join('')}</aside>`}
<div class="grid">
${plot('Latency: how many calls', 'histogram')}
${plot('Latency by percentile', 'percentiles')}
${plot('Throughput over time', 'throughput')}
${plot(`Latency over time${over}`, 'latency')}
${section('Latency', latencyTable(result))}
${section('How the payloads were transferred', travelledSection(result))}
${section('Calls by code', errorSection(result), true)}
</div>
</main>
<script type="application/json" id="result">${script(result)}</script>
<script>${vendored('uplot.js')}</script>
<script>
const drawCharts = ${drawCharts.toString()};
const styles = getComputedStyle(document.documentElement);
const result = JSON.parse(document.getElementById('result').textContent);
addEventListener('resize', drawCharts(result, uPlot, document, (name) => styles.getPropertyValue('--' + name)));
</script>
</body>
</html>
`;
}
