/**
 * Tests the curves of `npm run bench:scale`. The tests check the definition of a cliff, the content of the
 * page, and that loads match their curves. The tests measure nothing.
 */
import { describe, expect, it } from 'vitest';
import { cliffsOf, type Measured } from '../../bench/cliffs.ts';
import { curves } from '../../bench/scale/curves.ts';
import { cellsOf, pageOf } from '../../bench/scale/page.ts';

const line = (...points: [x: number, callsPerSecond: number][]): Measured[] =>
  points.map(([x, callsPerSecond]) => ({ x, callsPerSecond, disturbed: false }));

const found = (points: Measured[], bytes: boolean): unknown[] =>
  cliffsOf(points, bytes).map(({ from, to, times }) => [from.x, to.x, Number(times.toFixed(2))]);

describe('a cliff', () => {
  it.each([
    ['a rate that rises is none', line([1, 100], [2, 900]), false, []],
    ['nor is one that falls by half of itself', line([256, 150], [512, 100]), false, []],
    ['beyond that it is one', line([256, 160], [512, 100]), false, [[256, 512, 1.6]]],
    // The cost of a call is 1 us and one nanosecond per byte, which gives 10 us for 9,000 bytes.
    [
      'more bytes may take their time',
      line([1000, 1 / 2e-6], [9000, 1 / 10e-6], [99_000, 1 / 100e-6]),
      true,
      [],
    ],
    [
      'but no more than that',
      line([8000, 1 / 9e-6], [8193, 1 / 20e-6], [99_000, 1 / 100e-6]),
      true,
      [[8000, 8193, 2.18]],
    ],
    ['one point has none', line([1, 100]), false, []],
    ['nor has no point', [], true, []],
  ] as const)('%s', (_, points, bytes, expected) => {
    expect(found([...points], bytes)).toEqual(expected);
  });
});

describe('the page', () => {
  const points = line([256, 1600], [512, 1000]);
  const drawn = { title: 'Depth', axis: 'in flight' };
  const page = (peer: string): string =>
    pageOf(
      'a machine',
      ['a step'],
      [{ ...drawn, lines: [{ peer, points, cliffs: cliffsOf(points, false) }] }],
    );

  it('has the diagram, the cliff and the table, and needs no other file', () => {
    const text = page('rdma-rpc');
    expect(text).toContain('<svg');
    expect(text).toContain('1.6 ×');
    expect(text).toContain('<td>512</td><td>1,000</td>');
    expect(text).not.toMatch(/<(script|link|img)|href=|src=/);
    expect(text).not.toContain('NaN');
  });

  it('shows names as they are', () => {
    expect(page('<b>&')).toContain('&lt;b>&amp;');
  });

  it('omits a point without answers from the diagram, and its table shows that', () => {
    const stood = line([256, 1600], [512, 0], [1024, 0]);
    const lines = [
      { peer: 'rdma-rpc', points: stood, cliffs: cliffsOf(stood, false) },
      { peer: 'grpc-js', points: line([256, 0]), cliffs: [] },
    ];
    const text = pageOf('', [], [{ ...drawn, lines }]);
    expect(text).toContain('<title>rdma-rpc, 256: 1,600 calls/s</title>');
    expect(text.match(/<circle/g)).toHaveLength(1);
    expect(text).not.toMatch(/NaN|Infinity/);
    expect(cellsOf({ ...drawn, lines })).toEqual([
      ['in flight', 'rdma-rpc, calls/s', 'grpc-js, calls/s'],
      ['256', '1,600', '-'],
      ['512', '-', '-'],
      ['1,020', '-', '-'],
    ]);
  });

  it('marks points that others disturbed in every round', () => {
    const points = line([256, 1600]).map((point) => ({ ...point, disturbed: true }));
    const lines = [{ peer: 'rdma-rpc', points, cliffs: [] }];
    expect(cellsOf({ ...drawn, lines })[1]).toEqual(['256', '1,600 (!)']);
  });

  it('names a curve that was not run', () => {
    expect(pageOf('', [], [{ ...drawn, lines: [] }])).toContain('Depth: not run.');
  });
});

describe('curves', () => {
  it('have points in order, and a load of its own behind each name', () => {
    for (const { points } of curves) {
      const xs = points.map(({ x }) => x);
      expect(xs).toEqual([...new Set(xs)].sort((a, b) => a - b));
    }
    const scenarios = curves.flatMap(({ points }) => points.map(({ scenario }) => scenario));
    // A point may belong to two curves.
    for (const each of scenarios) expect(scenarios.find(({ name }) => name === each.name)).toEqual(each);
  });

  it('keep at least one call in flight on each connection', () => {
    for (const { scenario } of curves.flatMap(({ points }) => points))
      expect(scenario.inFlight).toBeGreaterThanOrEqual(scenario.sessions);
  });
});
