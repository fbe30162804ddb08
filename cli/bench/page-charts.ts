/**
 * Draws the plots of the report. This function runs in the browser. page.ts puts its source text into the
 * page, beside uPlot, so it may use only its arguments. It is a function rather than a string, so that it is
 * compiled and checked like other code.
 */
import type UPlot from 'uplot';
import type { Result } from './result.ts';

/** The part of a browser's document that is used here. */
export interface Page {
  getElementById(id: string): { readonly clientWidth: number } | null;
}

/**
 * Draws the charts of a result on the page. `colour` returns the colour of that name in the page's style.
 * Returns a function that fits the plots to a new width of the page.
 */
export function drawCharts(
  result: Result,
  Plot: typeof UPlot,
  page: Page,
  colour: (name: string) => string,
): () => void {
  const height = 260;
  const open = result.latencyUs.corrected !== null;
  const time = (us: number): string => {
    if (us < 1000) return `${Number(us.toPrecision(3))} us`;
    if (us < 1e6) return `${Number((us / 1000).toPrecision(3))} ms`;
    return `${Number((us / 1e6).toPrecision(3))} s`;
  };
  const timeOrNone = (_: unknown, us: number | null): string => (us === null ? '–' : time(us));
  const counted = (_: unknown, value: number | null): string =>
    value === null ? '–' : Math.round(value).toLocaleString('en');
  const plots: [UPlot, { readonly clientWidth: number }][] = [];

  const axis = (more: UPlot.Axis): UPlot.Axis => ({
    stroke: colour('muted'),
    grid: { stroke: colour('line'), width: 1 },
    ticks: { stroke: colour('line'), width: 1 },
    ...more,
  });
  const line = (label: string, name: string, more: UPlot.Series = {}): UPlot.Series => ({
    label,
    stroke: colour(name),
    width: 2,
    points: { show: false },
    ...more,
  });
  const draw = (
    id: string,
    options: Omit<UPlot.Options, 'width' | 'height'>,
    data: UPlot.AlignedData,
  ): void => {
    const place = page.getElementById(id);
    if (place === null) return;
    plots.push([new Plot({ width: place.clientWidth, height, ...options }, data, place as never), place]);
  };
  /** Latencies, on a logarithmic scale. */
  const latencyAxis = axis({
    size: 72,
    values: (_: UPlot, splits: number[]) =>
      splits.map((us) => (us > 0 && Math.abs(Math.log10(us) % 1) < 1e-9 ? time(us) : '')),
  });
  /** Numbers of any size have the short form, because the width of an axis is fixed. */
  const short = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });
  const countAxis = axis({
    size: 72,
    values: (_: UPlot, splits: number[]) => splits.map((n) => short.format(n)),
  });
  const latencyScale: UPlot.Scale = { distr: 3 };

  const bars = result.histogram;
  const filled = (count: number | undefined): number | null => (count ? count : null);
  if (bars.length > 0) {
    const edges = bars.map((_, i) => i);
    const paths = (size: number, align: -1 | 0 | 1) => Plot.paths.bars!({ size: [size], align });
    const bar = (label: string, name: string, size: number, align: -1 | 0 | 1): UPlot.Series => ({
      ...line(label, name),
      width: 0,
      fill: colour(name),
      paths: paths(size, align),
      value: counted,
    });
    const rangeText = (_: unknown, i: number | null): string => {
      const found = i === null ? undefined : bars[i];
      return found === undefined ? '–' : `${time(found.from)} to ${time(found.to)}`;
    };
    draw(
      'histogram',
      {
        scales: {
          x: { time: false, range: [-0.6, bars.length - 0.4] },
          y: { range: (_, __, max) => [0, max * 1.05] },
        },
        axes: [
          axis({
            splits: () => edges.filter((i) => Math.abs(Math.log10(bars[i]!.from) % 1) < 1e-3),
            values: (_: UPlot, splits: number[]) =>
              splits.map((i) => (bars[i] === undefined ? '' : time(bars[i].from))),
          }),
          countAxis,
        ],
        series: [
          { label: 'Latency', value: rangeText },
          open ? bar('Raw', 'raw', 0.42, -1) : bar('Calls', 'raw', 0.9, 0),
          ...(open ? [bar('Corrected', 'corrected', 0.42, 1)] : []),
        ],
      },
      [
        edges,
        bars.map(({ raw }) => filled(raw)),
        ...(open ? [bars.map(({ corrected }) => filled(corrected))] : []),
      ] as UPlot.AlignedData,
    );
  }

  const { percentiles } = result;
  if (percentiles.length > 0) {
    const last = percentiles.length - 1;
    const nines = percentiles.map(({ percentile }, i) =>
      i === last ? 0.1 * i : -Math.log10(1 - percentile / 100),
    );
    const marks = [Math.log10(2), 1, 2, 3, 4, 5, 6, 7, 8].filter((x) => x <= nines[last]!);
    // The percent sign is left out, because neighbouring labels leave no room for it.
    const percentText = (x: number): string => `${Number((100 * (1 - 10 ** -x)).toFixed(7))}`;
    draw(
      'percentiles',
      {
        scales: { x: { time: false }, y: latencyScale },
        axes: [
          axis({ splits: () => marks, values: (_: UPlot, splits: number[]) => splits.map(percentText) }),
          latencyAxis,
        ],
        series: [
          {
            label: 'Percentile',
            value: (_: UPlot, __: number, ___: number, i: number | null) =>
              i === null ? '–' : `${Number(percentiles[i]!.percentile.toFixed(6))} %`,
          },
          line('Raw', 'raw', { value: timeOrNone }),
          ...(open ? [line('Corrected', 'corrected', { value: timeOrNone })] : []),
        ],
      },
      [
        nines,
        percentiles.map(({ raw }) => raw || null),
        ...(open ? [percentiles.map(({ corrected }) => corrected || null)] : []),
      ] as UPlot.AlignedData,
    );
  }

  const parts = result.intervals.filter(({ fromMs, toMs }) => toMs > fromMs);
  if (parts.length > 0) {
    const middle = parts.map(({ fromMs, toMs }) => (fromMs + toMs) / 2000);
    const end = parts.at(-1)!.toMs / 1000;
    const seconds = (_: unknown, value: number | null): string =>
      value === null ? '–' : `${value.toFixed(2)} s`;
    const x = { time: false, range: [0, end] as UPlot.Range.MinMax };
    const timeAxis = axis({ values: (_: UPlot, splits: number[]) => splits.map((s) => `${s} s`) });
    const rate = (calls: number, { fromMs, toMs }: (typeof parts)[number]): number =>
      (1000 * calls) / (toMs - fromMs);
    const failing = parts.some(({ failed }) => failed > 0);
    draw(
      'throughput',
      {
        scales: { x, y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
        axes: [timeAxis, countAxis],
        series: [
          { label: 'Time', value: seconds },
          line('Calls/s', 'raw', { value: counted, fill: colour('shade') }),
          ...(failing ? [line('Failed/s', 'bad', { value: counted })] : []),
        ],
      },
      [
        middle,
        parts.map((part) => rate(part.calls, part)),
        ...(failing ? [parts.map((part) => rate(part.failed, part))] : []),
      ] as UPlot.AlignedData,
    );
    draw(
      'latency',
      {
        scales: { x, y: latencyScale },
        axes: [timeAxis, latencyAxis],
        series: [
          { label: 'Time', value: seconds },
          line('p50', 'raw', { value: timeOrNone }),
          line('p99', 'corrected', { value: timeOrNone }),
          line('max', 'muted', { value: timeOrNone, width: 1 }),
        ],
      },
      [
        middle,
        parts.map(({ p50 }) => p50 || null),
        parts.map(({ p99 }) => p99 || null),
        parts.map(({ max }) => max || null),
      ],
    );
  }
  return () => {
    for (const [plot, { clientWidth }] of plots) plot.setSize({ width: clientWidth, height });
  };
}
