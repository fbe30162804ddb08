/**
 * Tests the parts of examples/fleet that need no other process: arguments, addresses, the table and the page.
 */
import { describe, expect, test } from 'vitest';
import { endsOf } from '../../examples/fleet/hosts.ts';
import { optionsOf } from '../../examples/fleet/options.ts';
import { page } from '../../examples/fleet/page.ts';
import { lineOf, type Second, tableOf } from '../../examples/fleet/table.ts';

const second = (a: number, b: number, rest: Partial<Second> = {}): Second => ({
  answers: new Map([
    ['a', a],
    ['b', b],
  ]),
  errors: new Map(),
  p50Ms: 0.5,
  p99Ms: 1.25,
  events: [],
  ...rest,
});
const seconds = [
  second(10, 30),
  second(20, 0, { errors: new Map([['unavailable', 1]]), p99Ms: 2, events: ['b <killed>'] }),
];

describe('the page', () => {
  const html = page(['a', 'b'], seconds);

  test('has a bar for each server and second, as high as its calls', () => {
    const heights = [...html.matchAll(/<rect [^>]*height="(\d+)"/g)].map(([, height]) => Number(height));
    expect(heights).toEqual([15, 45, 30, 0]);
  });

  test('has a line for each second, with what happened, and the sums', () => {
    expect(html).toContain(
      '<tr class="bad"><td>2<td>20<td>0<td>0.5<td>2.0<td>unavailable 1<td>b &lt;killed></tr>',
    );
    expect(html).toContain('60 calls, 1 of them failed, in 2 seconds with 1 events.');
  });

  test('needs no other file, and no script', () => {
    expect(html).not.toMatch(/https?:|src=|href=|<script/);
  });
});

test('the table has what the gateway sees of each server', () => {
  const rows = [
    { name: 'a', address: '10.77.0.2:5000' },
    { name: 'b', address: '' },
  ];
  const seen = [{ address: '10.77.0.2:5000', state: 'ready', stale: true }];
  expect(tableOf(rows, seen, seconds)).toEqual([
    'second 2: 20 calls/s, p50 0.5 ms, p99 2.0 ms, errors unavailable 1, failed in all 1',
    '',
    'server  address         gateway sees  calls/s  calls',
    'a       10.77.0.2:5000  ready, stale       20     30',
    'b                       not listed          0     30',
    '',
    '2 s  b <killed>',
  ]);
  expect(lineOf(['a', 'b'], seconds)).toBe('2\t20\t0\t2.0\tunavailable 1\tb <killed>');
});

test('each cable has a network of its own', () => {
  expect(endsOf(0)).toEqual(['10.77.0.1', '10.77.0.2']);
  expect(endsOf(65)).toEqual(['10.77.1.5', '10.77.1.6']);
  const many = Array.from({ length: 40_000 }, (_, n) => endsOf(n).join());
  expect(new Set(many).size).toBe(many.length);
  expect(many.at(-1)).toMatch(/^10\.79\.\d{1,3}\.\d{1,3},/);
});

test('arguments are checked', () => {
  expect(optionsOf(['--servers', '5', '--plain'])).toMatchObject({
    servers: 5,
    events: 20,
    plain: true,
    file: false,
  });
  for (const [name, value] of [
    ['servers', '0'],
    ['events', '1.5'],
    ['clients', 'x'],
    ['cut', '-1'],
  ])
    expect(() => optionsOf([`--${name}=${value}`])).toThrow(`--${name} ${value}: give a whole number`);
  expect(() => optionsOf(['--nodes'])).toThrow();
});
