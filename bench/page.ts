/**
 * The page of results, bench/RESULTS.md, and its section in README.md. It begins with the results of a
 * program that is written as in the quick start, followed by the goals and by one line for each scenario. The
 * orchestrator creates it from the rows.
 */
import type { Verdict } from './goals.ts';
import { disturbedMark, figure, goalLines, table, verdictWords } from './report.ts';
import type { Row } from './rows.ts';

const own = 'rdma-rpc';
const notRun = 'These rows were not part of the run.';

const versionsOf = (rows: readonly Row[]): string[] => [...new Set(rows.map(({ node }) => node))];
const unique = (names: readonly string[]): string[] => [...new Set(names)];
const marked = (text: string, row: Row): string => (row.disturbed ? `${text} ${disturbedMark}` : text);

const plainColumns = [
  ['quick start', 'quick start'],
  ['quick start, new', 'a new buffer for each call'],
  [own, 'everything given back'],
  ['grpc-js', 'grpc-js'],
  ['MessagePort', 'MessagePort'],
] as const;

/** Returns the first second and the steady rate, as `1,200 → 15,000`. */
function firstAndSteady(row: Row | undefined): string {
  if (row === undefined) return '-';
  return marked(`${figure(row.firstCallsPerSecond)} → ${figure(row.callsPerSecond)}`, row);
}

function percents(first: number, steady: number): string {
  return `${(100 * first).toFixed(0)} → ${(100 * steady).toFixed(0)} %`;
}

/** Returns one line for each load and Node, or an empty text where none of these rows was run. */
export function quickStartTable(all: readonly Row[]): string {
  const rows = all.filter(({ scenario }) => /^(tcp-)?plain-/.test(scenario));
  if (rows.length === 0) return '';
  const versions = versionsOf(rows);
  const columns = plainColumns.filter(([peer]) => rows.some((row) => row.peer === peer));
  const lines = unique(rows.map(({ scenario }) => scenario)).flatMap((scenario) =>
    versions.map((version) => {
      const find = (peer: string): Row | undefined =>
        rows.find((row) => row.scenario === scenario && row.peer === peer && row.node === version);
      const [row, back, grpc] = [find('quick start'), find(own), find('grpc-js')];
      const share =
        row && back
          ? percents(row.firstCallsPerSecond / back.callsPerSecond, row.callsPerSecond / back.callsPerSecond)
          : '-';
      const times =
        row && grpc
          ? `${figure(row.firstCallsPerSecond / grpc.firstCallsPerSecond)} → ${figure(row.callsPerSecond / grpc.callsPerSecond)}`
          : '-';
      const name = scenario.replace('plain-', '');
      return [
        versions.length > 1 ? `${name}, Node ${version}` : name,
        ...columns.map(([peer]) => firstAndSteady(find(peer))),
        share,
        times,
      ];
    }),
  );
  return table([['calls/s', ...columns.map(([, title]) => title), 'of given back', '× grpc-js'], ...lines]);
}

/** The verdict on each goal, by the rows of one version of Node. */
export interface NodeVerdicts {
  readonly version: string;
  readonly verdicts: readonly Verdict[];
}

/** Returns the goals, with two columns for each Node if several were measured. */
export function goalTable(nodes: readonly NodeVerdicts[]): string {
  const [first] = nodes;
  if (first === undefined || nodes.length === 1) return goalLines(first?.verdicts ?? []);
  return table([
    ['goal', ...nodes.flatMap(({ version }) => [`found, Node ${version}`, ''])],
    ...first.verdicts.map(({ goal }, index) => [
      goal,
      ...nodes.flatMap(({ verdicts }) => {
        const { found, reached } = verdicts[index]!;
        return [found, verdictWords[`${reached}`]];
      }),
    ]),
  ]);
}

function shareText(share: number | undefined): string {
  if (share === undefined) return '-';
  return share > 10 ? `${figure(share)} ×` : `${Math.round(100 * share)} %`;
}

/**
 * Returns one line for each scenario: our figures in full, and calls/s of the other peers. All rows were
 * measured on the same version of Node.
 */
export function scenarioLines(rows: readonly Row[]): string {
  const counted = rows.filter(
    ({ scenario, callsPerSecond }) => callsPerSecond > 0 && !/^(tcp-)?(plain|rest)-/.test(scenario),
  );
  const others = unique(counted.map(({ peer }) => peer)).filter((peer) => peer !== own);
  const lines = unique(counted.map(({ scenario }) => scenario)).map((scenario) => {
    const find = (peer: string): Row | undefined =>
      counted.find((row) => row.scenario === scenario && row.peer === peer);
    const row = find(own);
    const ratio = (peer: string): number | undefined => {
      const base = find(peer)?.callsPerSecond;
      return row && base ? row.callsPerSecond / base : undefined;
    };
    const [times, share] = [ratio('grpc-js'), ratio('limit')];
    const large = row !== undefined && Math.max(row.payloadBytes, row.besideBytes) >= 4096;
    return [
      scenario,
      row ? marked(figure(row.callsPerSecond), row) : '-',
      large ? figure(row.bytesPerSecond / 1e9) : '-',
      figure(row?.p50Us ?? 0),
      figure(row?.p99Us ?? 0),
      figure(times ?? 0),
      shareText(share),
      ...others.map((peer) => {
        const other = find(peer);
        return other ? marked(figure(other.callsPerSecond), other) : '-';
      }),
    ];
  });
  const heads = ['calls/s', own, 'GB/s', 'p50 us', 'p99 us', '× grpc-js', 'of the limit', ...others];
  if (lines.length === 0) return notRun;
  // Columns in which no scenario has a figure are left out.
  const used = heads.map((_, column) => lines.some((line) => line[column] !== '-'));
  return table([heads, ...lines].map((line) => line.filter((_, column) => used[column])));
}

/**
 * Returns the lines of both networks, each network with the columns of its own peers. All rows were measured
 * on the same version of Node.
 */
function scenarioPart(rows: readonly Row[], level: string): string {
  const tcp = (row: Row): boolean => row.scenario.startsWith('tcp-');
  return [
    `${level} On one host: shared memory and unix sockets`,
    scenarioLines(rows.filter((row) => !tcp(row))),
    `${level} Over TCP`,
    scenarioLines(rows.filter(tcp)),
  ].join('\n\n');
}

const plainWords = `Calls/s in the first second of two new processes, and one and a half seconds later (after
the arrow), with eight calls in flight. "Quick start" is a program written as in docs/start/quick-start.md:
it sets no option except deadlines, sends the same \`Uint8Array\` again and again, and releases no memory.
"A new buffer" makes and fills a \`Uint8Array\` for each call. "Everything given back" is the program of the
scenarios below, which releases all memory. The last two columns divide the rates of the quick start by the
steady rate of "everything given back", and by the rates of grpc-js in the same period.`;

const expertWords = `Calls/s. Unlike the quick start, the program of \`rdma-rpc\` reuses memory here: large
requests lie in buffers of \`allocBuffer()\`, responses arrive \`into\` the same buffers, and both sides
have an arena of 384 MiB. Each other peer gets the kind of buffer with which it is fastest. GB/s and
latencies are those of \`rdma-rpc\`; in rows with transfers beside small calls, GB/s are those of the
transfers. \`npm run bench -- --json rows.json\` prints all figures of all peers.`;

const otherResults = `[README.md](README.md) explains how it is measured. Other pages have the results of
[streams](stream/RESULTS.md), of [sockets and the tunnel](sockets/RESULTS.md), of [the
codec](codec/RESULTS.md), and of [RDMA devices](verbs/RESULTS.md). [HISTORY.md](HISTORY.md) has the results
of earlier runs and of single measurements.`;

const goalWords = `"The limit" is a small program that only moves the bytes: two rings in shared memory,
driven from JS with promises, without methods, deadlines, errors or flow control. "Same placement" means
that both programs ran on the same CPUs.`;

export interface Page {
  /** Day, machine, Nodes, placement and rounds. */
  readonly head: string;
  readonly rows: readonly Row[];
  readonly goals: readonly NodeVerdicts[];
  readonly remarks: readonly string[];
}

export function pageText({ head, rows, goals, remarks }: Page): string {
  const versions = versionsOf(rows);
  const scenarios =
    versions.length > 1
      ? versions.map(
          (version) =>
            `### Node ${version}\n\n${scenarioPart(
              rows.filter(({ node }) => node === version),
              '####',
            )}`,
        )
      : [scenarioPart(rows, '###')];
  return `${[
    '# Benchmark results',
    head,
    ...remarks,
    otherResults,
    '## As in the quick start',
    plainWords,
    quickStartTable(rows) || notRun,
    '## Goals',
    goalWords,
    goalTable(goals),
    '## Scenarios',
    expertWords,
    ...scenarios,
  ].join('\n\n')}\n`;
}

/** The scenarios that README.md shows behind the loads of the quick start. */
const readmeScenarios: readonly string[] = [
  ...['echo-32B-x1', 'echo-32B-x256', 'put-1MiB-x8', 'echo-64KiB-x8', 'echo-1MiB-x8', 'asleep-32B-x1'],
  ...['tcp-echo-32B-x256', 'tcp-put-1MiB-x8'],
];

/**
 * Returns the figures of rdma-rpc and of grpc-js for one load, or an empty list when rdma-rpc was not run.
 */
function readmeLine(rows: readonly Row[], name: string, scenario: string, peer: string): string[][] {
  const find = (each: string): Row | undefined =>
    rows.find((row) => row.scenario === scenario && row.peer === each);
  const [row, grpc] = [find(peer), find('grpc-js')];
  if (row === undefined) return [];
  const large = Math.max(row.payloadBytes, row.besideBytes) >= 4096;
  return [
    [
      name,
      marked(figure(row.callsPerSecond), row),
      large ? figure(row.bytesPerSecond / 1e9) : '-',
      figure(row.p50Us),
      figure(row.p99Us),
      grpc ? marked(figure(grpc.callsPerSecond), grpc) : '-',
      grpc ? figure(row.callsPerSecond / grpc.callsPerSecond) : '-',
    ],
  ];
}

/**
 * Returns one table: first the program of the quick start, then programs that do everything that the guide
 * recommends. All rows were measured on the same version of Node.
 */
export function readmeTable(rows: readonly Row[]): string {
  const plain = unique(rows.map(({ scenario }) => scenario)).filter((name) => /^(tcp-)?plain-/.test(name));
  const lines = [
    ...plain.flatMap((name) =>
      readmeLine(rows, `${name.replace('plain-', '')}, quick start`, name, 'quick start'),
    ),
    ...readmeScenarios.flatMap((name) => readmeLine(rows, name, name, own)),
  ];
  if (lines.length === 0) return notRun;
  return table([['calls/s', own, 'GB/s', 'p50 us', 'p99 us', 'grpc-js', '× grpc-js'], ...lines]);
}

const disturbedWords = `Other programs disturbed figures with ${disturbedMark}.`;

/**
 * Returns `before` with new figures between `<!-- figures -->` and `<!-- /figures -->`: the rows as in the
 * quick start, and some other rows of the first Node. Throws when `before` has no such section.
 */
export function readmeText(before: string, { head, rows }: Pick<Page, 'head' | 'rows'>): string {
  const part = /(?<=<!-- figures -->\n)[\s\S]*?(?=<!-- \/figures -->)/;
  if (!part.test(before)) throw new Error('--readme: the file has no part between figures and /figures');
  const [version] = versionsOf(rows);
  const figures = readmeTable(rows.filter(({ node }) => node === version));
  const about = figures.includes(disturbedMark) ? `${head} ${disturbedWords}` : head;
  return before.replace(part, () => `\n${about}\n\n${figures}\n\n`);
}
