/** The page at the end of a run: calls of each server by second, with restarts and errors. */

export interface Second {
  /** Answers of each server. */
  readonly counts: readonly number[];
  readonly p99Ms: number;
  /** Errors by code, '0' for none. */
  readonly failed: string;
  readonly events: readonly string[];
}

const colours = ['#4269d0', '#efb118', '#ff725c', '#6cc5b0', '#3ca951', '#ff8ab7', '#a463f2', '#97bbf5'];

/** Returns the page as HTML that needs no other file. */
export function page(names: readonly string[], seconds: readonly Second[]): string {
  const most = Math.max(1, ...seconds.map(({ counts }) => counts.reduce((sum, count) => sum + count, 0)));
  const width = 100 / Math.max(1, seconds.length);
  const bars = seconds.map(({ counts }, i) => {
    let below = 0;
    const parts = counts.map((count, server) => {
      const height = (60 * count) / most;
      below += height;
      const fill = colours[server % colours.length];
      return `<rect x="${i * width}" y="${60 - below}" width="${width * 0.9}" height="${height}" fill="${fill}"/>`;
    });
    return parts.join('');
  });
  const rows = seconds.map(
    ({ counts, p99Ms, failed, events }, i) =>
      `<tr><td>${i + 1}<td>${counts.join('<td>')}<td>${p99Ms.toFixed(1)}<td>${failed}<td>${events.join(', ')}</tr>`,
  );
  const legend = names.map(
    (name, i) => `<span style="color:${colours[i % colours.length]}">■ ${name}</span>`,
  );
  return `<!doctype html><meta charset="utf-8"><title>Fleet</title>
<style>body{font:14px system-ui;margin:2em}td,th{padding:2px 10px;text-align:right}</style>
<h1>Calls of each server by second</h1>
<p>${legend.join(' ')}</p>
<svg viewBox="0 0 100 60" width="100%" height="300" preserveAspectRatio="none">${bars.join('')}</svg>
<table><tr><th>second<th>${names.join('<th>')}<th>p99 ms<th>errors<th>events</tr>
${rows.join('\n')}
</table>
`;
}
