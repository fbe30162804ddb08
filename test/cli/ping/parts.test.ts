/**
 * Tests the parts of `rdma-rpc ping` that need no server: addresses, summaries, the timeline and the advice.
 */
import { afterEach, describe, expect, test } from 'vitest';
import { hostPort } from '../../../cli/host-port.ts';
import { adviceFor, TooLate } from '../../../cli/ping/advice.ts';
import { percentilesOf } from '../../../cli/ping/many.ts';
import { spreadOf } from '../../../cli/ping/rounds.ts';
import { Timeline } from '../../../cli/ping/steps.ts';
import { replaceClock } from '../../../runtime/clock.ts';

afterEach(() => replaceClock(undefined));

test.each([
  ['server-7', { host: 'server-7', port: 7 }],
  ['server-7:80', { host: 'server-7', port: 80 }],
  ['10.0.0.5', { host: '10.0.0.5', port: 7 }],
  ['::1', { host: '::1', port: 7 }],
  ['[::1]', { host: '::1', port: 7 }],
  ['[fe80::1%eth0]:80', { host: 'fe80::1%eth0', port: 80 }],
  ['server-7:0', undefined],
  ['server-7:', undefined],
  ['server-7:http', undefined],
  ['a:b:c', undefined],
  ['unix:/tmp/s', undefined],
  ['', undefined],
])('the host and port of %j', (text, expected) => expect(hostPort(text, 7)).toEqual(expected));

test.each([
  [[], undefined],
  [[5], { count: 1, min: 5, avg: 5, max: 5 }],
  [[3, 1, 2], { count: 3, min: 1, avg: 2, max: 3 }],
  [[1, 1, 2], { count: 3, min: 1, avg: 1.333, max: 2 }],
])('the minimum, average and maximum of %j', (values, expected) =>
  expect(spreadOf(values)).toEqual(expected),
);

test.each([
  [[7], { count: 1, p50: 7, p90: 7, p99: 7, max: 7 }],
  [[10, 9, 8, 7, 6, 5, 4, 3, 2, 1], { count: 10, p50: 5, p90: 9, p99: 10, max: 10 }],
  [Array.from({ length: 1000 }, (_, at) => at + 1), { count: 1000, p50: 500, p90: 900, p99: 990, max: 1000 }],
])('the percentiles of case %#', (values, expected) => expect(percentilesOf(values)).toEqual(expected));

describe('the timeline', () => {
  test('has each step with its own time, also failed steps', () => {
    let nowMs = 100;
    replaceClock(() => nowMs);
    const told: string[] = [];
    const timeline = new Timeline('resolve', true, ({ step }) => told.push(step));
    const passed = (ms: number, act: () => void): void => {
      nowMs += ms;
      act();
    };
    passed(1, () => timeline.end('connect', { about: '10.0.0.5:1' }));
    passed(2, () => timeline.take({ step: 'connected' }));
    passed(3, () => timeline.take({ step: 'secured' }));
    passed(4, () => timeline.take({ step: 'welcomed' }));
    passed(5, () => timeline.take({ step: 'unreachable', fabric: 'verbs', reason: 'no route' }));
    passed(6, () => timeline.take({ step: 'attached', fabric: 'tcp' }));
    const others = [{ name: 'verbs', reason: 'no route' }];
    passed(7, () => timeline.take({ step: 'opened', fabric: 'tcp', others }));
    expect(timeline.current).toBe('answer');
    expect(timeline.steps).toEqual([
      { step: 'resolve', ms: 1, about: '10.0.0.5:1' },
      { step: 'connect', ms: 2 },
      { step: 'tls', ms: 3 },
      { step: 'welcome', ms: 4 },
      { step: 'attach', ms: 5, about: 'verbs', failed: 'no route' },
      { step: 'attach', ms: 6, about: 'tcp' },
      { step: 'fabric', ms: 7, about: 'tcp' },
    ]);
    expect(told).toEqual(timeline.steps.map(({ step }) => step));
    expect(timeline.totalMs).toBe(28);
    expect(timeline.others).toEqual(others);
  });

  test('expects no TLS where it is not used', () => {
    const timeline = new Timeline('connect', false);
    timeline.take({ step: 'connected' });
    expect(timeline.current).toBe('welcome');
  });
});

test.each([
  ['connect', Object.assign(new Error('x'), { code: 'EHOSTUNREACH' }), /no route/],
  ['connect', Object.assign(new Error('x'), { code: 'EACCES' }), /option socket/],
  ['connect', Object.assign(new Error('x'), { code: 'EWHATEVER' }), /address, the route/],
  ['connect', new TooLate('x'), /firewall drops/],
  ['fabric', new TooLate('x'), /the sideband works and the fabric does not/],
  ['session', new TooLate('x'), /the sideband answers and the fabric does not/],
  ['resolve', Object.assign(new Error('x'), { code: 'EAI_AGAIN' }), /resolv\.conf/],
] as const)('the advice at %s', (step, error, expected) => {
  expect(adviceFor(step, error)).toMatch(expected);
});
