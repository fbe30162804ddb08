/**
 * Tests `rdma-rpc devices`: its output for devices of every kind, and the command itself on any machine that
 * runs the tests.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { devicesText } from '../../cli/machine/devices.ts';
import type { DeviceCounters } from '../../runtime/counters/device-counters.ts';
import type { VerbsDetails, VerbsReport } from '../../runtime/native/native.ts';
import { expectSchema } from './schemas.ts';
import { device } from './scripted-machine.ts';

const none: VerbsReport = { whyNone: 'verbs is off: no RDMA device', whyNoCm: '', memlock: '', devices: [] };

test('shows ports, addresses and capabilities of a usable device', () => {
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
    '  lacks: on-demand paging, dmabuf',
    '  inline up to 512 B, up to 16 pieces in a SEND, 1 in a READ, 16 READs at a time',
    '  queues of 8192, messages up to 1 GiB',
    '  what does not fit a slot goes by READ and WRITE',
  ]);
});

test('shows the reason, and no unknown values, of a device that cannot be opened', () => {
  const capabilities = { ...device.capabilities, maxQpWr: 0 };
  const broken = { ...device, name: 'mlx5_1', whyNot: 'no permission for uverbs1', capabilities, ports: [] };
  const text = devicesText({ ...none, memlock: '8 MiB', whyNoCm: 'no rdma_cm', devices: [device, broken] });
  expect(text).toMatch(/^2 RDMA devices, 1 can be used\nrdma_cm: cannot be used: no rdma_cm\n/);
  expect(text).toMatch(/\nmlx5_1 \(InfiniBand\): cannot be used: no permission for uverbs1$/);
});

test('shows the reason and the capabilities of a device that can be opened but not used', () => {
  const text = devicesText({ ...none, devices: [{ ...device, whyNot: 'memlock is 64 KiB' }] });
  expect(text).toMatch(/cannot be used: memlock is 64 KiB\n {2}port 1: [\s\S]*\n {2}has: memory windows/);
});

describe('-v', () => {
  const details: VerbsDetails = {
    name: 'mlx5_0',
    whyNot: '',
    attributes: { node_guid: '0002:c903:0010:24d5', max_qp: '131072', atomic_cap: 'ATOMIC_HCA' },
    flags: ['SRQ_RESIZE', 'MEM_WINDOW_TYPE_2B'],
    ports: [
      { number: 1, attributes: { state: 'ACTIVE', sm_lid: '7' }, pkeys: { 0: '0xffff', 3: '0x8001' } },
      { number: 2, attributes: {}, pkeys: {} },
    ],
  };
  const counters: DeviceCounters[] = [
    { device: 'mlx5_0', port: 0, counters: { cnpHandled: 0 } },
    { device: 'mlx5_0', port: 1, counters: { out_of_sequence: 12, port_xmit_data: 7 } },
    { device: 'mlx5_9', port: 1, counters: { link_downed: 1 } },
  ];

  test('shows all attributes, flags, ports, P_Keys and counters below the device', () => {
    const text = devicesText({ ...none, devices: [device] }, [details], counters);
    const lines = text.split('\n');
    expect(lines.slice(lines.findIndex((line) => line.includes('READ and WRITE')) + 1)).toEqual([
      '  device: attributes',
      '    node_guid: 0002:c903:0010:24d5',
      '    max_qp: 131072',
      '    atomic_cap: ATOMIC_HCA',
      '  device_cap_flags',
      '    SRQ_RESIZE',
      '    MEM_WINDOW_TYPE_2B',
      '  port 1: attributes',
      '    state: ACTIVE',
      '    sm_lid: 7',
      '  port 1: P_Keys',
      '    0: 0xffff',
      '    3: 0x8001',
      '  device: counters',
      '    cnpHandled: 0',
      '  port 1: counters',
      '    out_of_sequence: 12',
      '    port_xmit_data: 7',
    ]);
  });

  test('prints all of them as JSON', () => {
    expectSchema('devices', { ...none, devices: [device], details: [details], counters });
  });

  test('shows those of each device below it', () => {
    const second = { ...device, name: 'mlx5_1' };
    const text = devicesText({ ...none, devices: [second, device] }, [details], counters);
    expect(text.indexOf('node_guid')).toBeGreaterThan(text.indexOf('mlx5_0 ('));
    expect(text.match(/node_guid/g)).toHaveLength(1);
  });
});

test('shows the reason when there is no device', () => {
  expect(devicesText(none)).toBe('no RDMA device: verbs is off: no RDMA device');
  const whyNone = 'this machine has no RDMA device (soft-RoCE)';
  expect(devicesText({ ...none, whyNone })).toBe(whyNone);
});

test.each<[string[]]>([[[]], [['-v']], [['--json']], [['-v', '--json']]])(
  'the command lists the devices and ends with 0: %j',
  (args) => {
    const main = fileURLToPath(new URL('../../dist/bundle/cli.js', import.meta.url));
    const done = spawnSync(process.execPath, [main, 'devices', ...args], { encoding: 'utf8' });
    expect({ status: done.status, errors: done.stderr }).toEqual({ status: 0, errors: '' });
    if (!args.includes('--json'))
      expect(done.stdout).toMatch(
        /^(no RDMA device: .+|this machine has no RDMA device .+|\d+ RDMA devices?, \d+ can be used)\n/,
      );
    else {
      expectSchema('devices', JSON.parse(done.stdout));
      const more = args.includes('-v') ? ['details', 'counters'] : [];
      expect(Object.keys(JSON.parse(done.stdout) as object)).toEqual([...Object.keys(none), ...more]);
    }
  },
);
