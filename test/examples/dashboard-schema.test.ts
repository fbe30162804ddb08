/**
 * Compares the pages of examples/dashboard with Grafana's own schemas of dashboards and of their panels. The
 * package @grafana/schema has these schemas as types, which are generated from the sources of Grafana.
 */
import { expect, test } from 'vitest';
import { read } from '../house/tree.ts';
import { compiled } from './compiled.ts';

const timeSeries =
  '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

interface Page {
  readonly panels: readonly {
    readonly type: string;
    readonly options: object;
    readonly fieldConfig: { readonly defaults: { readonly custom?: object } };
  }[];
}

/** Returns a module that gives a page, and what is special in its panels, the types of Grafana. */
function moduleOf(page: Page): string {
  const settings = page.panels.flatMap(({ options, fieldConfig }) => [
    `export const o: Plain<Options> = ${JSON.stringify(options)};`,
    `export const f: FieldConfig = ${JSON.stringify(fieldConfig.defaults.custom ?? {})};`,
  ]);
  return `
    import type { Dashboard } from '@grafana/schema';
    import type { FieldConfig, Options as All } from '${timeSeries}';
    // Grafana fills in missing options of a panel.
    type Options = Omit<All, 'legend' | 'tooltip'> & {
      legend: Partial<All['legend']>;
      tooltip: Partial<All['tooltip']>;
    };
    // The texts of enums are allowed in JSON.
    type Plain<T> = T extends string ? \`\${T}\` : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
    type Variable = NonNullable<NonNullable<Dashboard['templating']>['list']>[number];
    // Variables with queries have this field, which the schema does not list.
    type Variables = { list: (Variable & { definition?: string })[] };
    export const page: Partial<Omit<Dashboard, 'templating'>> & { templating: Variables } =
      ${JSON.stringify(page)};
    ${settings.map((text, i) => text.replace(/const (\w)/, `const $1${i}`)).join('\n')}`;
}

const pages = ['rdma-rpc', 'fleet'].map(
  (name) => JSON.parse(read(`examples/dashboard/${name}.json`)) as Page,
);

test('pages have the form that Grafana publishes, and mistakes are found', () => {
  const text = JSON.stringify(pages[0]);
  const wrong: [string, string, RegExp][] = [
    ['"gridPos"', '"gridPosition"', /gridPosition/],
    ['"placement":"bottom"', '"placement":"below"', /below/],
    ['"graphTooltip":1', '"graphTooltip":7', /7/],
  ];
  const changed = wrong.map(([from, to]) => JSON.parse(text.replace(from, to)) as Page);
  expect(pages.flatMap(({ panels }) => panels.map(({ type }) => type))).toEqual(
    pages.flatMap(({ panels }) => panels.map(() => 'timeseries')),
  );
  const found = compiled([...pages, ...changed].map(moduleOf));
  expect(found.slice(0, pages.length)).toEqual(pages.map(() => ''));
  for (const [i, [, , reason]] of wrong.entries()) expect(found[pages.length + i]).toMatch(reason);
});
