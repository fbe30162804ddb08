/**
 * Tests that the alerts of examples/dashboard query only exported samples, and each alert links to its
 * section of a page.
 */
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { read } from '../house/tree.ts';
import { exported } from './exported.ts';
import { parsed } from './promql.ts';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

const { groups } = parse(read('examples/dashboard/alerts.yaml')) as {
  groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);
const page = read('docs/deploy/alerts.md');
const application = await exported();

test('each alert has a section, and each section an alert', () => {
  const sections = [...page.matchAll(/^## (\w+)$/gm)].map((match) => match[1]);
  expect(sections).toEqual(rules.map(({ alert }) => alert));
  expect(new Set(sections).size).toBe(sections.length);
});

test.each(rules)('$alert', ({ alert, expr, for: time, labels, annotations }) => {
  const { selectors, grouping } = parsed(expr);
  const known = new Set<string>();
  for (const selector of selectors) {
    const own = application.labels.get(selector.metric);
    expect(own, selector.metric).toBeDefined();
    expect([...own!]).toEqual(expect.arrayContaining([...selector.labels]));
    if (selector.rated) expect(application.counters).toContain(selector.metric);
    for (const label of own!) known.add(label);
  }
  expect([...known]).toEqual(expect.arrayContaining([...grouping]));
  const left = /\bby \(/.test(expr) ? grouping : [...known];
  const shown = [...annotations.summary.matchAll(/\$labels\.(\w+)/g)].map((match) => match[1]!);
  expect(left).toEqual(expect.arrayContaining(shown));
  expect(time ?? '0s').toMatch(/^\d+[sm]$/);
  expect(['critical', 'warning']).toContain(labels.severity);
  expect(annotations.runbook_url).toBe(`docs/deploy/alerts.md#${alert.toLowerCase()}`);
});
