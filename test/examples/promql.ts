/**
 * Reads queries with the grammar of Prometheus itself, for the tests of the dashboard, its alerts and the
 * manifests.
 */
import { parser } from '@prometheus-io/lezer-promql';

export interface Selector {
  readonly metric: string;
  /** The labels in its matchers. */
  readonly labels: readonly string[];
  /** True when the query takes a rate or an increase of the metric. */
  readonly rated: boolean;
}

export interface Query {
  readonly selectors: readonly Selector[];
  /** The labels by which something is grouped. */
  readonly grouping: readonly string[];
}

/** Throws when the text is not a query. Variables of Grafana are replaced first. */
export function parsed(text: string): Query {
  const query = text.replaceAll('$__rate_interval', '5m');
  const selectors: { metric: string; labels: string[]; rated: boolean }[] = [];
  const grouping: string[] = [];
  const within: string[] = [];
  let functions: string[] = [];
  parser.parse(query).iterate({
    enter(node) {
      const own = query.slice(node.from, node.to);
      if (node.type.isError)
        throw new Error(`no query at ${node.from} '${query.slice(node.from)}': ${query}`);
      if (node.name === 'FunctionCall') functions.push(own.slice(0, own.indexOf('(')).trim());
      if (node.name === 'VectorSelector')
        selectors.push({
          metric: '',
          labels: [],
          rated: functions.some((name) => /^i?rate$|^increase$/.test(name)),
        });
      const selector = selectors.at(-1);
      if (node.name === 'Identifier' && within.at(-1) === 'VectorSelector') selector!.metric = own;
      if (node.name === 'LabelName')
        (within.includes('GroupingLabels') ? grouping : selector!.labels).push(own);
      within.push(node.name);
    },
    leave(node) {
      within.pop();
      if (node.name === 'FunctionCall') functions = functions.slice(0, -1);
    },
  });
  return { selectors, grouping };
}
