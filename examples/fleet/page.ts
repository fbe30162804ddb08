/** The page at the end of a run: calls of each server by second, latency, and the events. */
import { errorsOf, type Second } from './table.ts';

const colours = ['#4269d0', '#efb118', '#ff725c', '#6cc5b0', '#3ca951', '#ff8ab7', '#a463f2', '#97bbf5'];

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Bars of each second, with one part for each server. The second with most calls is 60 high. */
function bars(names: readonly string[], seconds: readonly Second[]): string {
  const counts = seconds.map(({ answers }) => names.map((name) => answers.get(name) ?? 0));
  const most = Math.max(1, ...counts.map((each) => each.reduce((sum, count) => sum + count, 0)));
  const width = 100 / Math.max(1, seconds.length);
  return counts
    .map((each, i) => {
      let below = 0;
      return each
        .map((count, server) => {
          const height = (60 * count) / most;
          below += height;
          const fill = colours[server % colours.length];
          return `<rect x="${i * width}" y="${60 - below}" width="${width * 0.9}" height="${height}" fill="${fill}"/>`;
        })
        .join('');
    })
    .join('');
}

/** Returns the line of the 99th percentile; its maximum is 20 high. */
function latency(seconds: readonly Second[]): string {
  const most = Math.max(1, ...seconds.map(({ p99Ms }) => p99Ms));
  const width = 100 / Math.max(1, seconds.length);
  const points = seconds.map(({ p99Ms }, i) => `${(i + 0.45) * width},${20 - (20 * p99Ms) / most}`);
  return `<polyline fill="none" stroke="#4269d0" stroke-width="0.3" points="${points.join(' ')}"/>`;
}

/** Returns the page as HTML that needs no other file. */
export function page(names: readonly string[], seconds: readonly Second[]): string {
  const rows = seconds.map((second, i) => {
    const counts = names.map((name) => second.answers.get(name) ?? 0);
    const cells = [i + 1, ...counts, second.p50Ms.toFixed(1), second.p99Ms.toFixed(1), errorsOf(second)];
    const events = second.events.map(escaped).join(', ');
    const style = errorsOf(second) === '0' ? '' : ' class="bad"';
    return `<tr${style}><td>${cells.map((cell) => escaped(String(cell))).join('<td>')}<td>${events}</tr>`;
  });
  const legend = names.map(
    (name, i) => `<span style="color:${colours[i % colours.length]}">■</span> ${escaped(name)}`,
  );
  const total = seconds.reduce(
    (sum, { answers }) => [...answers.values()].reduce((all, n) => all + n, sum),
    0,
  );
  const failed = seconds.reduce(
    (sum, { errors }) => [...errors.values()].reduce((all, n) => all + n, sum),
    0,
  );
  const events = seconds.reduce((sum, second) => sum + second.events.length, 0);
  return `<!doctype html><meta charset="utf-8"><title>Fleet</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; }
body { font: 14px system-ui; margin: 2em; }
td, th { padding: 2px 10px; text-align: right; }
td:last-child { text-align: left; }
.bad { background: #ff725c55; }
</style>
<h1>What clients saw</h1>
<p>${total} calls, ${failed} of them failed, in ${seconds.length} seconds with ${events} events.</p>
<h2>Calls of each server by second</h2>
<p>${legend.join(' ')}</p>
<svg viewBox="0 0 100 60" width="100%" height="300" preserveAspectRatio="none">${bars(names, seconds)}</svg>
<h2>99th percentile by second</h2>
<svg viewBox="0 0 100 20" width="100%" height="100" preserveAspectRatio="none">${latency(seconds)}</svg>
<table><tr><th>second<th>${names.map(escaped).join('<th>')}<th>p50 ms<th>p99 ms<th>errors<th>events</tr>
${rows.join('\n')}
</table>
`;
}
