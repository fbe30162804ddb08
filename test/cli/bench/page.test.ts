/**
 * Tests the report of `rdma-rpc bench` in a real browser: Debian's Chromium, where it is installed. The
 * report's contents come from a load on a simulated clock.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LoadRun, type MakeCall } from '../../../cli/bench/load.ts';
import { pageOf } from '../../../cli/bench/page.ts';
import { Recording } from '../../../cli/bench/recording.ts';
import { type Result, resultOf } from '../../../cli/bench/result.ts';
import { Schedule } from '../../../cli/bench/schedule.ts';
import { needs, whyNot } from '../../needs.ts';
import { oneByOne, VirtualClock } from './virtual.ts';

needs('browser');

const evil = '</script><script>document.title = "taken"</script><img src=x onerror="document.title=1">';

/** Every `failing`-th call fails; 0 means that none does. */
async function result(rps: number | undefined, total: number, failing = 0): Promise<Result> {
  const clock = new VirtualClock();
  const answered = oneByOne(clock, 0.25, 400, 200);
  const call: MakeCall = async (number, worker) => {
    const end = await answered(number, worker);
    return failing > 0 && number % failing === 0
      ? { code: 'UNAVAILABLE', message: evil, responseBytes: 0 }
      : end;
  };
  const maxDurationMs = Number.POSITIVE_INFINITY;
  const rates = { kind: 'const', step: 0, stepDurationMs: 0, maxDurationMs } as const;
  const schedule = rps === undefined ? undefined : new Schedule({ ...rates, start: rps });
  const recording = new Recording({
    open: rps !== undefined,
    expectedMs: maxDurationMs,
    skip: 0,
    rows: false,
  });
  const plan = { concurrency: 10, total, durationMs: maxDurationMs, schedule, graceMs: 0 };
  const end = await clock.run(new LoadRun(plan, clock, call, recording).run());
  return resultOf({
    target: {
      address: '10.0.0.5:5000',
      method: 'a.B/C',
      protocol: 'rdma-rpc',
      fabric: 'verbs',
      device: 'mlx5_0',
    },
    load: {
      loop: rps === undefined ? 'closed' : 'open',
      concurrency: 10,
      connections: 1,
      total,
      skipFirst: 0,
      timeoutMs: 5000,
      ...(rps === undefined ? {} : { schedule: { kind: 'const', start: rps } }),
    },
    startedAt: new Date(0),
    stopped: false,
    end,
    recording,
    requestBytes: 1_500_000,
    travelled: {
      requests: { bulk: total / 4, sent: (3 * total) / 4 },
      responses: { bulk: 0, sent: total },
      frames: { inline: total / 2, eager: total / 2 },
    },
  });
}

const folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-page-'));
let browser: Browser | undefined;
beforeAll(async () => {
  if (whyNot('browser') !== '') return;
  // Chromium requires this flag for root; the page is our own.
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
}, 60_000);
afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Errors, and requests of the page to the network, are collected in `trouble`. */
async function opened(report: Result, trouble: string[], width = 1280): Promise<Page> {
  const page = await browser!.newPage({ viewport: { width, height: 900 } });
  page.on('pageerror', (error) => trouble.push(error.message));
  page.on('console', (message) => trouble.push(message.text()));
  page.on('request', (request) => {
    if (request.url() !== page.url() && !request.url().startsWith('file:')) trouble.push(request.url());
  });
  const path = join(folder, 'page.html');
  writeFileSync(path, pageOf(report));
  await page.goto(pathToFileURL(path).href);
  return page;
}

/** Returns the number of pixels of each plot that have been drawn on. */
const inked = (page: Page): Promise<Record<string, number>> =>
  page.evaluate(`Object.fromEntries([...document.querySelectorAll('.plot')].map((plot) => {
    const canvas = plot.querySelector('canvas');
    if (canvas === null) return [plot.id, 0];
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return [plot.id, data.filter((value, i) => i % 4 === 3 && value > 0).length];
  }))`);

test('shows figures, plots and remarks of an open loop whose server stopped, without external resources', async () => {
  const trouble: string[] = [];
  const page = await opened(await result(2000, 4000, 10), trouble);
  expect(trouble).toEqual([]);
  expect(await page.title()).toBe('rdma-rpc bench: a.B/C');
  const drawn = await inked(page);
  expect(Object.keys(drawn)).toEqual(['histogram', 'percentiles', 'throughput', 'latency']);
  for (const pixels of Object.values(drawn)) expect(pixels).toBeGreaterThan(1000);
  const text = (selector: string) => page.locator(selector).allInnerTexts();
  expect(await text('h1')).toEqual(['a.B/C at 10.0.0.5:5000 over verbs (mlx5_0)']);
  expect(await text('h2')).toEqual([
    'Latency: how many calls',
    'Latency by percentile',
    'Throughput over time',
    'Latency over time, corrected',
    'Latency',
    'How the payloads were transferred',
    'Calls by code',
  ]);
  expect((await text('aside p')).join('\n')).toMatch(/found all 10 workers busy and began late/);
  expect((await text('.key')).join('\n')).toMatch(/along with a SEND 3,000 \(75 %\)\s+bulk 1,000 \(25 %\)/);
  const tables = (await text('section.wide table')).join('\n');
  expect(tables).toMatch(/OK\s+3,600\s+90 %/);
  expect(tables).toContain(evil);
  // The values under the pointer are shown below the plot.
  await page.locator('#percentiles .u-over').hover();
  expect((await text('#percentiles .u-legend')).join(' ')).toMatch(
    /Percentile:?\s*9\d[\d.]* %.*Corrected:?\s*[\d.]+ \w+/s,
  );
  await page.close();
});

test('shows no latency, rather than 0, when no call was answered with OK', async () => {
  const figures = /<div class="tiles">.*?<\/div>\s*<\/div>|<table>.*?<\/table>/gs;
  const shown = (report: Result): string => pageOf(report).match(figures)!.join('');
  expect(shown(await result(undefined, 100, 1))).toMatch(/<b>–<\/b><span>median.*<th>p99<\/th><td>–<\/td>/s);
  expect(shown(await result(undefined, 100, 1))).not.toMatch(/>0 [mnu]?s</);
  expect(shown(await result(undefined, 100, 2))).not.toContain('–');
});

test('shows a closed loop on a narrow screen in one column, with nothing beyond the edge', async () => {
  const trouble: string[] = [];
  const page = await opened(await result(undefined, 2000), trouble, 420);
  expect(trouble).toEqual([]);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(420);
  for (const pixels of Object.values(await inked(page))) expect(pixels).toBeGreaterThan(1000);
  // The plots grow with a wider window.
  await page.setViewportSize({ width: 800, height: 900 });
  const width = await page
    .locator('#latency canvas')
    .evaluate((canvas) => (canvas as { clientWidth?: number }).clientWidth);
  expect(width).toBeGreaterThan(500);
  expect(await page.locator('aside').textContent()).toMatch(/closed loop waits/);
  await page.close();
});

test('shows no plots, but no error either, when no call was answered', async () => {
  const trouble: string[] = [];
  const call: MakeCall = async () => ({ code: 'UNAVAILABLE', message: 'gone', responseBytes: 0 });
  const clock = new VirtualClock();
  const recording = new Recording({ open: false, expectedMs: 100, skip: 0, rows: false });
  const plan = {
    concurrency: 1,
    total: 3,
    durationMs: Number.POSITIVE_INFINITY,
    schedule: undefined,
    graceMs: 0,
  };
  const end = await clock.run(new LoadRun(plan, clock, call, recording).run());
  const page = await opened(
    resultOf({
      target: { address: 'x', method: 'a.B/C', protocol: 'grpc' },
      load: { loop: 'closed', concurrency: 1, connections: 1, total: 3, skipFirst: 0, timeoutMs: 5000 },
      startedAt: new Date(0),
      stopped: false,
      end,
      recording,
      requestBytes: 0,
      travelled: null,
    }),
    trouble,
  );
  expect(trouble).toEqual([]);
  expect(await page.locator('.tile.bad').textContent()).toMatch(/^3\s*failed/);
  await page.close();
});
