/**
 * Tests `rdma-rpc links`: its output for links of every kind, on simulated machines, and the command itself.
 */
import { describe, expect, test } from 'vitest';
import { linksOf, linksText } from '../../cli/machine/links.ts';
import type { DeviceCounters } from '../../runtime/counters/device-counters.ts';
import { run } from './command.ts';
import { expectSchema } from './schemas.ts';
import { scripted } from './scripted-machine.ts';

/** Returns the files of a port, as the kernel has them. */
const portFiles = (device: string, port: number, files: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(files).map(([name, text]) => [
      `/sys/class/infiniband/${device}/ports/${port}/${name}`,
      text,
    ]),
  );
const infiniband = {
  state: '4: ACTIVE',
  phys_state: '5: LinkUp',
  rate: '100 Gb/sec (4X EDR)',
  link_layer: 'InfiniBand',
  lid: '0x3',
  sm_lid: '0x1',
};
const ethernet = {
  state: '4: ACTIVE',
  phys_state: '5: LinkUp',
  rate: '25 Gb/sec (1X EDR)',
  link_layer: 'Ethernet',
  lid: '0x0',
  sm_lid: '0x0',
  'gid_attrs/ndevs/0': 'eth1',
  'gid_attrs/ndevs/1': 'eth1',
  'gid_attrs/ndevs/2': 'eth1.7',
};

const textOf = (files: Readonly<Record<string, string>>, counters: readonly DeviceCounters[] = []) =>
  linksText(linksOf(scripted(files), counters)).split('\n');

test('each port has a line, with its error counters that are not 0', () => {
  const counters: DeviceCounters[] = [
    { device: 'mlx5_0', port: 0, counters: { cnpHandled: 9 } },
    { device: 'mlx5_0', port: 1, counters: { port_xmit_data: 7, symbol_error: 12, link_downed: 0 } },
    { device: 'mlx5_0', port: 2, counters: { link_downed: 1, symbol_error: 2 } },
  ];
  const files = {
    ...portFiles('rocep1s0', 1, ethernet),
    ...portFiles('mlx5_0', 1, infiniband),
    ...portFiles('mlx5_0', 2, { ...infiniband, lid: '0x4' }),
  };
  expect(textOf(files, counters)).toEqual([
    'mlx5_0 port 1: ACTIVE, LinkUp, 100 Gb/sec (4X EDR), InfiniBand, LID 3, SM LID 1',
    '  has counted: symbol_error 12',
    'mlx5_0 port 2: ACTIVE, LinkUp, 100 Gb/sec (4X EDR), InfiniBand, LID 4, SM LID 1',
    '  has counted: link_downed 1, symbol_error 2',
    'rocep1s0 port 1: ACTIVE, LinkUp, 25 Gb/sec (1X EDR), Ethernet, interface eth1, eth1.7',
  ]);
});

describe('a link that does not work is followed by the remedy', () => {
  test.each([
    [{ ...infiniband, state: '1: DOWN', phys_state: '2: Polling' }, /→ the cable and the switch/],
    [{ ...infiniband, state: '2: INIT', sm_lid: '0x0' }, /→ a subnet manager \(opensm\): none has/],
    [{ ...infiniband, state: '3: ARMED' }, /→ the subnet manager, whose log/],
    [{ ...ethernet, state: '1: DOWN', phys_state: '3: Disabled' }, /→ ip link set eth1 up/],
    [{ state: '1: DOWN', link_layer: 'Ethernet' }, /→ ip link set its interface up/],
  ])('in case %#', (files, expected) => {
    const [, remedy] = textOf(portFiles('mlx5_0', 1, files));
    expect(remedy).toMatch(expected);
  });
});

test('missing or invalid files are shown as unknown', () => {
  const links = linksOf(scripted(portFiles('odd0', 1, { lid: 'none' })), []);
  expect(expectSchema('links', { links }).links).toEqual([
    {
      device: 'odd0',
      port: 1,
      state: 'unknown',
      physicalState: 'unknown',
      rate: '',
      linkLayer: 'unknown',
      lid: 0,
      smLid: 0,
      netdevs: [],
      errors: {},
    },
  ]);
});

test('the JSON has every field', () => {
  const counters = [{ device: 'rxe0', port: 1, counters: { retry_exceeded_err: 2 } }];
  const links = linksOf(scripted(portFiles('rxe0', 1, ethernet)), counters);
  expect(expectSchema('links', { links }).links[0]).toMatchObject({
    netdevs: ['eth1', 'eth1.7'],
    errors: { retry_exceeded_err: 2 },
  });
});

test('no device is no error', () => {
  expect(linksText([])).toMatch(/^this machine has no RDMA device .*rdma link add/);
});

test.each([[], ['--json']])('the command lists the links and ends with 0 %s', async (...args) => {
  const { code, out, errors } = await run('links', ...args);
  expect([code, errors]).toEqual([0, '']);
  if (args.length === 0) expect(out).toMatch(/^(this machine has no RDMA device |\S+ port \d+: )/);
  else expectSchema('links', JSON.parse(out));
});
