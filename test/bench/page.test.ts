/**
 * Tests the page of results and its section in README.md: their order, and the contents of each cell.
 */
import { describe, expect, it } from 'vitest';
import { judge } from '../../bench/goals.ts';
import { nodesOf, nodeText, ownNode } from '../../bench/nodes.ts';
import {
  goalTable,
  pageText,
  quickStartTable,
  readmeTable,
  readmeText,
  scenarioLines,
} from '../../bench/page.ts';
import type { Row } from '../../bench/rows.ts';
import { row } from './row.ts';

const cellsOf = (table: string): string[][] =>
  table.split('\n').map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );

const plain = (peer: string, firstCallsPerSecond: number, callsPerSecond: number, more = {}): Row =>
  row('tcp-plain-put-1MiB-x8', peer, { firstCallsPerSecond, callsPerSecond, ...more });

describe('the rows as in the quick start', () => {
  const rows = [
    plain('quick start', 100, 600),
    plain('rdma-rpc', 800, 1000),
    plain('grpc-js', 50, 60, { disturbed: true }),
  ];

  it('show the first second and the steady rate, also as a share of the steady rate with all memory returned', () => {
    expect(cellsOf(quickStartTable(rows))).toEqual([
      ['calls/s', 'quick start', 'everything given back', 'grpc-js', 'of given back', '× grpc-js'],
      expect.anything(),
      ['tcp-put-1MiB-x8', '100 → 600', '800 → 1,000', '50 → 60 (!)', '10 → 60 %', '2 → 10'],
    ]);
  });

  it('have a line for each Node, compared with rows of that Node only', () => {
    const other = rows.map((each) => ({ ...each, node: '24.0.0', callsPerSecond: 1200 }));
    const [, , first, second] = cellsOf(quickStartTable([...rows, ...other]));
    expect(first![0]).toBe('tcp-put-1MiB-x8, Node 20.0.0');
    expect(second).toEqual([
      'tcp-put-1MiB-x8, Node 24.0.0',
      ...['100 → 1,200', '800 → 1,200', '50 → 1,200 (!)', '8 → 100 %', '2 → 1'],
    ]);
  });

  it('leave out ratios to rows that were not run', () => {
    expect(cellsOf(quickStartTable(rows.slice(0, 1)))[2]).toEqual([
      'tcp-put-1MiB-x8',
      ...['100 → 600', '-', '-'],
    ]);
    expect(quickStartTable([row('echo-32B-x1', 'rdma-rpc')])).toBe('');
  });
});

describe('the line of a scenario', () => {
  it('has ours in full and calls/s of the others, each peer in its column', () => {
    const rows = [
      row('echo-4KiB-x8', 'rdma-rpc', { callsPerSecond: 5000, bytesPerSecond: 2e9, payloadBytes: 4096 }),
      row('echo-4KiB-x8', 'limit', { callsPerSecond: 10_000 }),
      row('echo-32B-x1', 'rdma-rpc', { callsPerSecond: 4000 }),
      row('echo-32B-x1', 'grpc-js', { callsPerSecond: 100, disturbed: true }),
    ];
    expect(cellsOf(scenarioLines(rows))).toEqual([
      ['calls/s', 'rdma-rpc', 'GB/s', 'p50 us', 'p99 us', '× grpc-js', 'of the limit', 'limit', 'grpc-js'],
      expect.anything(),
      ['echo-4KiB-x8', '5,000', '2', '1', '2', '-', '50 %', '10,000', '-'],
      ['echo-32B-x1', '4,000', '-', '1', '2', '40', '-', '-', '100 (!)'],
    ]);
  });

  it('is omitted for scenarios without calls, and for rows as in the quick start', () => {
    const rows = [row('idle', 'rdma-rpc', { callsPerSecond: 0 }), plain('rdma-rpc', 1, 2)];
    expect(scenarioLines(rows)).toBe('These rows were not part of the run.');
  });
});

describe('the page', () => {
  const rows = [plain('quick start', 1, 2), row('echo-32B-x1', 'rdma-rpc')];
  const pageOf = (versions: string[]): string => {
    const all = versions.flatMap((node) => rows.map((each) => ({ ...each, node })));
    const goals = versions.map((version) => ({ version, verdicts: judge(all) }));
    return pageText({ head: 'a machine', rows: all, goals, remarks: ['quiet'] });
  };

  it('begins with the quick start, then come the goals, then the scenarios', () => {
    const headings = [...pageOf(['20.0.0']).matchAll(/^#+ .*/gm)].map(([heading]) => heading);
    expect(headings).toEqual([
      '# Benchmark results',
      '## As in the quick start',
      '## Goals',
      '## Scenarios',
      '### On one host: shared memory and unix sockets',
      '### Over TCP',
    ]);
  });

  it('of several Nodes has their figures beside each other', () => {
    const text = pageOf(['20.0.0', '24.0.0']);
    expect(text).toContain('### Node 24.0.0');
    expect(cellsOf(goalTable([{ version: '20.0.0', verdicts: judge([]) }]))[0]).toEqual([
      'goal',
      'found',
      '',
    ]);
    expect(text).toMatch(/\| goal +\| +found, Node 20\.0\.0 \| +\| found, Node 24\.0\.0 \|/);
  });

  it('fits into its section of README.md, and nothing else of that changes', () => {
    const before = 'above\n<!-- figures -->\nold $&\n<!-- /figures -->\nbelow\n';
    const after = readmeText(before, { head: 'a machine', rows });
    expect(after).toMatch(/^above\n<!-- figures -->\n\na machine\n\n\| calls\/s/);
    expect(after).toMatch(/echo-32B-x1[^\n]*\n\n<!-- \/figures -->\nbelow\n$/);
    expect(after).not.toContain('old');
    expect(readmeText(after, { head: 'a machine', rows })).toBe(after);
    const disturbed = rows.map((each) => ({ ...each, disturbed: true }));
    const explained = /\n\na machine Other programs disturbed figures with \(!\)\.\n\n\| calls\/s/;
    expect(readmeText(before, { head: 'a machine', rows: disturbed })).toMatch(explained);
    expect(() => readmeText('no such part', { head: '', rows })).toThrow('no part between');
  });
});

describe('the table of README.md', () => {
  const rows = [
    row('echo-32B-x1', 'rdma-rpc', { callsPerSecond: 4000 }),
    row('echo-32B-x1', 'grpc-js', { callsPerSecond: 100, disturbed: true }),
    row('echo-32B-x64', 'rdma-rpc', { callsPerSecond: 5000 }),
    row('tcp-plain-put-1MiB-x8', 'quick start', {
      callsPerSecond: 600,
      bytesPerSecond: 3e9,
      payloadBytes: 2 ** 20,
    }),
    row('tcp-plain-put-1MiB-x8', 'grpc-js', { callsPerSecond: 60 }),
  ];

  it('has the program of the quick start first, then chosen scenarios, each beside grpc-js', () => {
    expect(cellsOf(readmeTable(rows))).toEqual([
      ['calls/s', 'rdma-rpc', 'GB/s', 'p50 us', 'p99 us', 'grpc-js', '× grpc-js'],
      expect.anything(),
      ['tcp-put-1MiB-x8, quick start', '600', '3', '1', '2', '60', '10'],
      ['echo-32B-x1', '4,000', '-', '1', '2', '100 (!)', '40'],
    ]);
  });

  it('has the rows of the first Node only', () => {
    const both = [...rows, ...rows.map((each) => ({ ...each, node: '24.0.0' }))];
    const text = readmeText('<!-- figures -->\n<!-- /figures -->', { head: '', rows: both });
    expect(text.match(/echo-32B-x1/g)).toHaveLength(1);
  });

  it('contains a remark when none of its rows was run', () => {
    expect(readmeTable([row('echo-32B-x64', 'rdma-rpc')])).toBe('These rows were not part of the run.');
  });
});

describe('--node', () => {
  it('defaults to the Node that runs the benchmark', () => {
    expect(nodesOf([])).toEqual([ownNode]);
    expect(nodeText(ownNode)).toBe(`Node ${process.versions.node} (V8 ${process.versions.v8})`);
  });

  it('asks each executable for its version', () => {
    expect(nodesOf([process.execPath])).toEqual([ownNode]);
  });

  it.each(['true', '/nowhere/node'])('refuses %s', (file) => {
    expect(() => nodesOf([file])).toThrow(`--node ${file}: this is not a Node that runs here`);
  });
});
