/**
 * The curves as one self-contained HTML page, with a diagram and a table for each. Both axes are logarithmic.
 */

import type { Cliff, Measured } from '../cliffs.ts';
import { disturbedMark, figure } from '../report.ts';

export interface Line {
  readonly peer: string;
  readonly points: readonly Measured[];
  readonly cliffs: readonly Cliff[];
}

export interface Drawn {
  readonly title: string;
  readonly axis: string;
  readonly lines: readonly Line[];
}

const width = 860;
const height = 380;
const margin = { left: 80, right: 170, top: 20, bottom: 50 };
const colours = ['#0b6', '#36c', '#a5a', '#a60'];
const cliffColour = '#d22';

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

/** Returns the powers of ten around the values. */
function decades(values: readonly number[]): number[] {
  const first = Math.floor(Math.log10(Math.min(...values)));
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...values))));
  return Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index));
}

type Scale = (value: number) => number;

function logarithmic(low: number, high: number, from: number, to: number): Scale {
  const span = Math.log(high / low) || 1;
  return (value) => from + ((to - from) * Math.log(value / low)) / span;
}

function drawnLine({ peer, points, cliffs }: Line, index: number, x: Scale, y: Scale): string {
  const colour = colours[index % colours.length]!;
  const place = (point: Measured): string => `${x(point.x).toFixed(1)},${y(point.callsPerSecond).toFixed(1)}`;
  const dots = points.map((point) => {
    const [cx, cy] = place(point).split(',');
    const text = `${peer}, ${figure(point.x)}: ${figure(point.callsPerSecond)} calls/s${point.disturbed ? ', disturbed' : ''}`;
    const fill = point.disturbed ? '#fff' : colour;
    return `<circle cx="${cx}" cy="${cy}" r="3.5" fill="${fill}" stroke="${colour}"><title>${escaped(text)}</title></circle>`;
  });
  const breaks = cliffs.map(
    ({ from, to, times }) =>
      `<polyline points="${place(from)} ${place(to)}" stroke="${cliffColour}" stroke-width="4" fill="none"/>` +
      `<text x="${x(to.x).toFixed(1)}" y="${(y(to.callsPerSecond) + 18).toFixed(1)}" fill="${cliffColour}">${times.toFixed(1)} ×</text>`,
  );
  const last = points.at(-1);
  const name =
    last === undefined
      ? ''
      : `<text x="${width - margin.right + 10}" y="${(y(last.callsPerSecond) + 4).toFixed(1)}" fill="${colour}">${escaped(peer)}</text>`;
  return [
    `<polyline points="${points.map(place).join(' ')}" stroke="${colour}" stroke-width="2" fill="none"/>`,
    ...breaks,
    ...dots,
    name,
  ].join('\n');
}

/** A logarithmic axis does not contain 0, so only points with an answer are drawn. */
const hasPlace = (point: Measured): boolean => point.callsPerSecond > 0;

/**
 * Draws rates over the axis, with a line for each peer. Cliffs are red, and points that other processes
 * disturbed are hollow.
 */
function diagram({ title, axis, lines }: Drawn): string {
  const drawnLines = lines.map((line) => ({
    ...line,
    points: line.points.filter(hasPlace),
    cliffs: line.cliffs.filter(({ from, to }) => hasPlace(from) && hasPlace(to)),
  }));
  const points = drawnLines.flatMap((line) => line.points);
  if (points.length === 0) return `<p>${escaped(title)}: not run.</p>`;
  const xs = [...new Set(points.map((point) => point.x))].sort((a, b) => a - b);
  const rates = decades(points.map((point) => point.callsPerSecond));
  const right = width - margin.right;
  const bottom = height - margin.bottom;
  const x = logarithmic(xs[0]!, xs.at(-1)!, margin.left, right);
  const y = logarithmic(rates[0]!, rates.at(-1)!, bottom, margin.top);
  const rungs = rates.map((rate) => {
    const at = y(rate).toFixed(1);
    return `<line x1="${margin.left}" x2="${right}" y1="${at}" y2="${at}" stroke="#ddd"/><text x="${margin.left - 8}" y="${at}" text-anchor="end">${figure(rate)}</text>`;
  });
  const marks = xs.map(
    (value, index) =>
      `<text x="${x(value).toFixed(1)}" y="${bottom + 16 + 14 * (index % 2)}" text-anchor="middle">${figure(value)}</text>`,
  );
  return [
    `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}">`,
    ...rungs,
    ...marks,
    `<text x="${right + 10}" y="${bottom + 16}">${escaped(axis)}</text>`,
    ...drawnLines.map((line, index) => drawnLine(line, index, x, y)),
    '</svg>',
  ].join('\n');
}

/** Returns the same as a table, beginning with its head. */
export function cellsOf({ axis, lines }: Drawn): string[][] {
  const xs = [...new Set(lines.flatMap((line) => line.points.map((point) => point.x)))].sort((a, b) => a - b);
  const rate = (line: Line, x: number): string => {
    const point = line.points.find((each) => each.x === x);
    return point === undefined
      ? '-'
      : `${figure(point.callsPerSecond)}${point.disturbed ? ` ${disturbedMark}` : ''}`;
  };
  const head = [axis, ...lines.map(({ peer }) => `${peer}, calls/s`)];
  return [head, ...xs.map((x) => [figure(x), ...lines.map((line) => rate(line, x))])];
}

function htmlTable([head, ...rows]: string[][]): string {
  const row = (kind: 'th' | 'td', each: readonly string[]): string =>
    `<tr>${each.map((cell) => `<${kind}>${escaped(cell)}</${kind}>`).join('')}</tr>`;
  return `<table>${row('th', head ?? [])}${rows.map((each) => row('td', each)).join('\n')}</table>`;
}

/**
 * Returns an HTML page with the curves. `about` has the day, the machine and the rounds. `verdicts` has a
 * sentence for each cliff, or the sentence that none was found.
 */
export function pageOf(about: string, verdicts: readonly string[], drawn: readonly Drawn[]): string {
  const style =
    'body{font:15px/1.4 system-ui,sans-serif;max-width:900px;margin:2em auto;padding:0 1em}svg text{font-size:11px;dominant-baseline:middle}' +
    'table{border-collapse:collapse}td,th{text-align:right;padding:2px 12px;border-bottom:1px solid #ddd}';
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>rdma-rpc: curves</title><style>${style}</style></head><body>
<h1>rdma-rpc: where the curves go</h1>
<p>${escaped(about)}</p>
<h2>Cliffs</h2>
<ul>${verdicts.map((each) => `<li>${escaped(each)}</li>`).join('\n')}</ul>
${drawn.map((each) => `<h2>${escaped(each.title)}</h2>\n${diagram(each)}\n${htmlTable(cellsOf(each))}`).join('\n')}
</body></html>
`;
}
