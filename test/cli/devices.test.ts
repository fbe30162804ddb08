/**
 * `rdma-rpc devices`: its output for devices of every kind, and the command itself on the machine that runs
 * the tests, whatever its devices.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { devicesText } from '../../cli/machine/devices.ts';
import type { VerbsReport } from '../../runtime/native/native.ts';
import { device } from './scripted-machine.ts';

const none: VerbsReport = { whyNone: 'verbs is off: no RDMA device', whyNoCm: '', memlock: '', devices: [] };

test('a usable device: its ports, addresses and capabilities', () => {
  const report = { ...none, whyNone: '', memlock: 'unlimited', devices: [device] };
  expect(devicesText(report).split('\n')).toEqual([
    '1 RDMA device, 1 can be used',
    'rdma_cm: can be used',
    'locked memory: unlimited',
    '',
    'mlx5_0 (InfiniBand): can be used',
    '  port 1: ACTIVE, Ethernet, MTU 4096',
    '    GID 3: 10.77.0.1 (RoCE v2, eth1)',
    '  has: memory windows, immediate data, shared receives',
    '  has not: on-demand paging, dmabuf',
    '  inline up to 512 B, 16 pieces a send, 1 a READ, 16 READs at once',
    '  queues of 8192, messages up to 1 GiB',
    '  what does not fit a slot goes by READ and WRITE',
  ]);
});

test('one that cannot be opened: the reason, and no unknown values', () => {
  const capabilities = { ...device.capabilities, maxQpWr: 0 };
  const broken = { ...device, name: 'mlx5_1', whyNot: 'no permission for uverbs1', capabilities, ports: [] };
  const text = devicesText({ ...none, memlock: '8 MiB', whyNoCm: 'no rdma_cm', devices: [device, broken] });
  expect(text).toMatch(/^2 RDMA devices, 1 can be used\nrdma_cm: cannot be used: no rdma_cm\n/);
  expect(text).toMatch(/\nmlx5_1 \(InfiniBand\): cannot be used: no permission for uverbs1$/);
});

test('one that can be opened and not used: the reason, and its capabilities', () => {
  const text = devicesText({ ...none, devices: [{ ...device, whyNot: 'memlock is 64 KiB' }] });
  expect(text).toMatch(/cannot be used: memlock is 64 KiB\n {2}port 1: [\s\S]*\n {2}has: memory windows/);
});

test('none: the reason', () => {
  expect(devicesText(none)).toBe('no RDMA device: verbs is off: no RDMA device');
});

test.each([[], ['--json']])('the command ends with 0 and says what there is %s', (...args) => {
  const main = fileURLToPath(new URL('../../dist/bundle/cli.js', import.meta.url));
  const done = spawnSync(process.execPath, [main, 'devices', ...args], { encoding: 'utf8' });
  expect({ status: done.status, errors: done.stderr }).toEqual({ status: 0, errors: '' });
  if (args.length === 0)
    expect(done.stdout).toMatch(/^(no RDMA device: .+|\d+ RDMA devices?, \d+ can be used)\n/);
  else expect(Object.keys(JSON.parse(done.stdout) as object)).toEqual(Object.keys(none));
});
