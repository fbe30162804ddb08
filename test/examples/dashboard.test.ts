/**
 * The dashboard of examples/dashboard queries only exported samples.
 */
import { Registry } from 'prom-client';
import { createClient, createInProcessChannel, stats } from 'rdma-rpc';
import { collectNativeStats, prometheus } from 'rdma-rpc/prometheus';
import { expect, test } from 'vitest';
import { read } from '../house/tree.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

interface Dashboard {
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}

const dashboard = JSON.parse(read('examples/dashboard/rdma-rpc.json')) as Dashboard;
const targets = dashboard.panels.flatMap(({ targets }) => targets);
const asked = [
  ...targets.map(({ expr }) => expr),
  ...dashboard.templating.list.flatMap(({ definition }) => definition ?? []),
];

/** Returns the names of samples, and the labels of each, of an application with a call on both sides. */
async function exported(): Promise<Map<string, Set<string>>> {
  const registry = new Registry();
  collectNativeStats(registry);
  const count = prometheus({ registry });
  const channel = createInProcessChannel(
    (server) => server.use(count).add(EchoDefinition, { echo: (r) => r, behave: (r) => r }),
    { interceptors: [count] },
  );
  await createClient(EchoDefinition, channel).echo({ text: 'hi' });
  const found = new Map<string, Set<string>>();
  for (const line of (await registry.metrics()).split('\n')) {
    const [, name, labels = ''] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? [];
    if (name === undefined) continue;
    // Prometheus adds a label for the queried instance.
    found.set(name, new Set(['instance', ...[...labels.matchAll(/(\w+)="/g)].map((match) => match[1]!)]));
  }
  await channel.close();
  return found;
}

test('every metric and every label that it asks for is exported', async () => {
  const samples = await exported();
  const metrics = asked.flatMap((text) => text.match(/\brdma_rpc_\w+/g) ?? []);
  expect(metrics.length).toBeGreaterThan(20);
  expect([...new Set(metrics)].filter((name) => !samples.has(name))).toEqual([]);
  for (const text of asked) {
    const labels = new Set(
      [...samples].filter(([name]) => text.includes(name)).flatMap(([, own]) => [...own]),
    );
    const used = [
      ...[...text.matchAll(/[{,](\w+)(?:=|!=|=~|!~)"/g)].map((match) => match[1]!),
      ...[...text.matchAll(/\bby \(([^)]*)\)/g)].flatMap((match) => match[1]!.split(', ')),
    ];
    expect(
      used.filter((label) => !labels.has(label)),
      text,
    ).toEqual([]);
  }
});

test('counters of which a rate is taken are counters', () => {
  const known = new Set(Object.keys(stats()));
  const rated = asked.flatMap((text) =>
    [...text.matchAll(/rate\(rdma_rpc_native_(\w+)/g)].map((match) => match[1]!),
  );
  const names = rated.map((name) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()));
  expect(names.filter((name) => !known.has(name) || /Now$|^(arena|sessions|mrBytes)/.test(name))).toEqual([]);
});

test('legends name labels that are left, and no two panels overlap', () => {
  for (const { expr, legendFormat } of targets) {
    const by = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(', ') ?? ['instance'];
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map((match) => match[1]!);
    expect(
      shown.filter((label) => !by.includes(label)),
      expr,
    ).toEqual([]);
  }
  const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
});
