/** Tests that the pages of examples/dashboard query only exported samples, in the language of Prometheus. */
import { describe, expect, test } from 'vitest';
import { read } from '../house/tree.ts';
import { exported } from './exported.ts';
import { parsed } from './promql.ts';

interface Dashboard {
  readonly uid: string;
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}

const application = await exported();

describe.each(['rdma-rpc', 'fleet'])('%s.json', (name) => {
  const { panels, templating } = JSON.parse(read(`examples/dashboard/${name}.json`)) as Dashboard;
  const targets = panels.flatMap((panel) => panel.targets);
  const variables = templating.list.flatMap(({ definition }) => definition ?? []);

  test('has enough to look at', () => {
    expect(panels.length).toBeGreaterThan(10);
    expect(variables.length).toBeGreaterThan(1);
  });

  test.each(targets)('$expr', ({ expr, legendFormat }) => {
    const { selectors, grouping } = parsed(expr);
    const all = new Set<string>();
    for (const { metric, labels, rated } of selectors) {
      const own = application.labels.get(metric);
      expect(own, metric).toBeDefined();
      expect([...own!]).toEqual(expect.arrayContaining([...labels]));
      if (rated) expect(application.counters).toContain(metric);
      for (const label of own!) all.add(label);
    }
    expect([...all]).toEqual(expect.arrayContaining([...grouping]));
    // A legend can show only the labels that are left.
    const left = /\bby \(/.test(expr) ? grouping : ['instance'];
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map((match) => match[1]!);
    expect(left).toEqual(expect.arrayContaining(shown));
    const asked = [...expr.matchAll(/"\$(\w+)"/g)].map((match) => match[1]);
    expect(templating.list.map((variable) => variable.name)).toEqual(expect.arrayContaining(asked));
  });

  test.each(variables)('%s', (definition) => {
    const [, metric = '', label] = /^label_values\((\w+), (\w+)\)$/.exec(definition) ?? [];
    expect(application.labels.get(metric)).toContain(label);
  });

  test('no two panels overlap', () => {
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  });
});

test('a text that is no query is found, and so is a label of a matcher', () => {
  expect(() => parsed('sum by a (rate(x[5m))')).toThrow('no query');
  expect(parsed('sum by (a) (rate(x{b="1"}[$__rate_interval])) / y')).toEqual({
    selectors: [
      { metric: 'x', labels: ['b'], rated: true },
      { metric: 'y', labels: [], rated: false },
    ],
    grouping: ['a'],
  });
});
