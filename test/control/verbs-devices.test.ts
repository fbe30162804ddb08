/**
 * Tests that native code is asked whether this machine has an RDMA device when a connection is made, but not
 * for each connection.
 */

import { afterEach, expect, test, vi } from 'vitest';
import { replaceClock } from '../../runtime/clock.ts';
import { whyNoDevice, whyNoVerbs } from '../../runtime/control/verbs-devices.ts';
import { device } from '../cli/scripted-machine.ts';

let asked = 0;
let devices: { name: string; whyNot: string }[] = [];
vi.mock('../../runtime/native/native.ts', async (original) => ({
  ...(await original<object>()),
  loadNative: () => ({
    verbsDevices: () => {
      asked++;
      return { whyNone: 'there is none', devices };
    },
  }),
}));
afterEach(() => replaceClock(undefined));

test('the absence of devices is cached for a second, an existing device for ever', () => {
  let nowMs = 5000;
  replaceClock(() => nowMs);
  expect(whyNoVerbs()).toBe('there is none');
  devices = [{ name: 'mlx5_0', whyNot: '' }];
  nowMs = 5999;
  expect(whyNoVerbs()).toBe('there is none');
  expect(asked).toBe(1);
  expect(whyNoVerbs('mlx5_0')).toBe('');
  nowMs = 6000;
  expect(whyNoVerbs()).toBe('');
  devices = [];
  nowMs = 9000;
  expect(whyNoVerbs()).toBe('');
  expect(asked).toBe(3);
});

test.each([
  ['mlx5_0', true],
  ['mlx5_*', true],
  ['absent,mlx5_?', true],
  ['*', true],
  ['mlx5', false],
  ['mlx5.0', false],
  ['(', false],
  [',', false],
])('the option %s names mlx5_0: %s', (option, names) => {
  const report = { whyNone: '', whyNoCm: '', memlock: '', devices: [{ ...device, name: 'mlx5_0' }] };
  expect(whyNoDevice(report, option) === '').toBe(names);
});
