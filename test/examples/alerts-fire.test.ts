/**
 * Tests which alerts fire in which situation of a fleet, with the unit tests of Prometheus' own promtool
 * (Debian's `prometheus`). The tests are skipped where promtool is missing.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { read, root } from '../house/tree.ts';
import { needs } from '../needs.ts';
import { cases } from './alert-cases.ts';

needs('prometheus');

test('each alert has a situation in which it fires, and fires in no other', () => {
  const { groups } = parse(read('examples/dashboard/alerts.yaml')) as {
    groups: { rules: { alert: string }[] }[];
  };
  const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
  expect([...new Set(cases.flatMap((each) => each.alerts))].sort()).toEqual(alerts.sort());

  const folder = mkdtempSync(join(tmpdir(), 'alerts-'));
  const file = join(folder, 'cases.yaml');
  const expr = 'count by (alertname) (ALERTS{alertstate="firing"})';
  const tests = cases.map(({ what, series, alerts: firing }) => ({
    name: what,
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [
      {
        expr,
        eval_time: '35m',
        exp_samples: firing.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 })),
      },
    ],
  }));
  const rules = join(root, 'examples/dashboard/alerts.yaml');
  writeFileSync(file, stringify({ rule_files: [rules], evaluation_interval: '1m', tests }));
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  rmSync(folder, { recursive: true });
  expect(`${stdout}${stderr}`).toContain('SUCCESS');
  expect(status).toBe(0);
});
