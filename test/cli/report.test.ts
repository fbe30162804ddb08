/**
 * Tests the reports of `rdma-rpc doctor --report` for simulated machines and for the machine that runs the
 * tests. No report may contain anything private.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { hostname, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { examine } from '../../cli/machine/checks.ts';
import type { Facts } from '../../cli/machine/facts.ts';
import type { Machine } from '../../cli/machine/machine.ts';
import { Masking, privateHere } from '../../cli/machine/report/masking.ts';
import { reportText, subjectsOf } from '../../cli/machine/report/report.ts';
import { figureOf, selfTest, type Tested } from '../../cli/machine/report/self-test.ts';
import { loadNative, type VerbsDetails } from '../../runtime/native/native.ts';
import { runIn } from './command.ts';
import { device, facts, gid, laptop, port, scripted, server, withDevices } from './scripted-machine.ts';

/** The folder of all home directories; no file of the project names a home directory. */
const people = ['', 'home'].join('/');
const secrets = { hostNames: ['node7.corp.example', 'node7', 'corp.example'], users: ['alice'], homes: [] };

describe('masking', () => {
  test.each([
    ['cannot reach 10.77.0.1: no route', 'cannot reach ip4-1: no route'],
    ['10.0.0.1, 10.0.0.2, 10.0.0.1', 'ip4-1, ip4-2, ip4-1'],
    ['fd00:1::7 and FD00:1::7', 'ip6-1 and ip6-1'],
    ['GID ::ffff:10.77.0.1.', 'GID ip6-1.'],
    ['fe80::ec4:7aff:fe00:1%eth0 answers', 'ip6-link-local-1%eth0 answers'],
    ['MAC 0c:42:a1:03:00:4f', 'MAC mac-1'],
    ['node_guid 0c42:a103:004f:1234', 'node_guid guid-1'],
    ['sys_image_guid 0x0c42a103004f1234', 'sys_image_guid guid-1'],
    ['node_desc node7 mlx5_0', 'node_desc HOST mlx5_0'],
    ['NODE7.corp.example is down', 'HOST is down'],
    [`cannot open ${people}/bob/app/x.node`, `cannot open ${people}/USER/app/x.node`],
    ['owned by alice, not by malice', 'owned by USER, not by malice'],
    // Texts that stay in the report, because they do not identify a person or machine.
    ['127.0.0.1 and 0.0.0.0 and ::1 and ::', '127.0.0.1 and 0.0.0.0 and ::1 and ::'],
    ['firmware 22.38.1002, at 12:30:45', 'firmware 22.38.1002, at 12:30:45'],
    ['rdma_rpc::fabric::verbs', 'rdma_rpc::fabric::verbs'],
  ])('%s', (text, masked) => {
    expect(new Masking(secrets).text(text)).toBe(masked);
  });

  test('home folders are masked wherever they are', () => {
    const masking = new Masking({ hostNames: [], users: [], homes: ['/srv/people/alice'] });
    expect(masking.text('/srv/people/alice/app')).toBe('HOME/app');
  });

  test('words that every machine has are left alone', () => {
    const masking = new Masking({ hostNames: ['localhost', ''], users: ['root', 'node'], homes: ['/root'] });
    expect(masking.text('root runs node on localhost in /root')).toBe('root runs node on localhost in /root');
  });

  test('what the environment calls host, user and home is private', () => {
    const env = {
      HOSTNAME: 'pod-7.corp.example',
      USER: 'carol',
      LOGNAME: 'dave',
      SUDO_USER: 'erin',
      HOME: '/data/carol',
    };
    const masking = new Masking(privateHere(env));
    expect(masking.text('pod-7 pod-7.corp.example corp.example carol dave erin /data/carol/x')).toBe(
      'HOST HOST HOST USER USER USER HOME/x',
    );
  });
});

const details: VerbsDetails = {
  name: 'mlx5_0',
  whyNot: '',
  attributes: { fw_ver: '22.38.1002', node_guid: '0c42:a103:004f:1234', max_qp: '131072' },
  flags: ['MEM_WINDOW_TYPE_2B'],
  ports: [],
};
const count = (value: number) => [
  { device: 'mlx5_0', port: 1, counters: { port_xmit_data: value, symbol_error: 0, out_of_sequence: 3 } },
];
const latency = { min: 1, max: 9, typical: 1.5, average: 2, stdev: 1, p90: 3, p99: 4, p99_9: 5, p99_99: 9 };
const cpu = { user: 0, system: 0 };
const row = {
  bytes: 64,
  messages: 1000,
  elapsedUs: 1,
  latencyUs: latency,
  meanUs: 2,
  bandwidth: null,
  received: null,
  corrupt: 0,
  cpu: { client: cpu, server: cpu },
};
const tested: Tested = {
  subject: { fabric: 'verbs', device: 'mlx5_0' },
  results: [
    { test: 'send_lat', rows: [row], whyNot: '' },
    {
      test: 'send_bw',
      rows: [
        {
          ...row,
          latencyUs: null,
          bandwidth: { bytesPerSecond: 2 ** 30, peakBytesPerSecond: null, messagesPerSecond: 1 },
        },
      ],
      whyNot: '',
    },
    { test: 'atomic_lat', rows: [], whyNot: 'mlx5_0 has no atomic operations' },
  ],
  before: count(10),
  after: count(70),
};

/**
 * A simulated machine that has a host name, a user, addresses and a home folder in every place where a report
 * may show them.
 */
const named: Machine = scripted({
  ...server,
  '/proc/self/cgroup': '0::/kubepods/alice',
  '/sys/fs/cgroup/kubepods/alice/rdma.max': 'mlx5_0 hca_handle=2 hca_object=2000',
  '/sys/fs/cgroup/kubepods/alice/hugetlb.2MB.max': '0',
  '/proc/meminfo': 'HugePages_Total:      16\nHugePages_Free:        4\nHugepagesize:       2048 kB',
  '/proc/self/status': 'CapEff:\t0000000000000000\nSeccomp:\t0\nCpus_allowed_list:\t0-7',
  '/sys/devices/system/node/node0/cpulist': '0-3',
  '/sys/devices/system/node/node1/cpulist': '4-7',
  '/sys/class/infiniband/mlx5_0/device/numa_node': '1',
  '/sys/class/infiniband/mlx5_0/device/driver': '-> ../../../../bus/pci/drivers/mlx5_core',
  '/sys/class/infiniband/mlx5_0/device/current_link_speed': '16.0 GT/s PCIe',
  '/sys/class/infiniband/mlx5_0/device/current_link_width': '16',
  '/sys/module/mlx5_core/version': '5.0-0',
});
const known: Facts = withDevices({
  ...device,
  ports: [{ ...port, gids: [gid, { ...gid, index: 4, gid: 'fe80::ec4:7aff:fe00:1' }] }],
  capabilities: {
    ...device.capabilities,
    notes: [`Its peer 10.77.0.1 on node7.corp.example says ${people}/alice/x, mac 0c:42:a1:03:00:4f.`],
  },
});

const reportOf = (machine: Machine, about: Facts, results: readonly Tested[], all: readonly VerbsDetails[]) =>
  reportText(
    { machine, facts: about, findings: examine(machine, about), details: all, tested: results },
    new Masking(secrets),
  );

test('a report has a line for what a reader of an issue asks first', () => {
  const text = reportOf(named, known, [tested], [details]);
  for (const line of [
    '| driver | mlx5_core |',
    '| driver version | 5.0-0 |',
    '| firmware | 22.38.1002 |',
    '| PCI | 16.0 GT/s PCIe, 16 lanes |',
    '| NUMA node | 1; this process may run on 0, 1 |',
    '| port 1 | ACTIVE, Ethernet |',
    '| port 1 rate | 100 Gb/sec (4X EDR) |',
    '| port 1 MTU | 4096 bytes; interface eth1 9000 |',
    '| port 1 GID 3 | ip4-1 (RoCE v2, eth1) |',
    '| can | has: memory windows, immediate data, shared receives |',
    '| max_qp | 131072 |',
    '| device_cap_flags | MEM_WINDOW_TYPE_2B |',
    '| locked memory (memlock) | unlimited |',
    '| huge pages | HugePages_Total 16, HugePages_Free 4, Hugepagesize 2048 kB |',
    '| cgroup rdma.max | mlx5_0 hca_handle=2 hca_object=2000 |',
    '| cgroup hugetlb.2MB.max | 0 |',
    '| send_lat | 64 | 1.50 us (99 %: 4.00) |',
    '| send_bw | 64 | 1024 MB/s |',
    '| atomic_lat |  | not measured: mlx5_0 has no atomic operations |',
    '| port 1 port_xmit_data | 10 | 70 |',
    '| port 1 out_of_sequence | 3 | 3 |',
  ])
    expect(text.split('\n')).toContain(line);
  expect(text).not.toContain('symbol_error');
});

test('nothing private is in a report', () => {
  const text = reportOf(named, known, [tested], [details]);
  for (const secret of [
    'alice',
    'node7',
    'corp.example',
    '10.77.0.1',
    'fe80::ec4',
    '0c42:a103',
    '0c:42:a1:03:00:4f',
  ])
    expect(text).not.toContain(secret);
});

test('a machine without a device says so', () => {
  const text = reportOf(scripted(laptop), facts, [], []);
  expect(text).toContain('\nThis machine has no RDMA device.\n');
});

test.each([
  ['0000000000000000', '8388608 bytes'],
  ['0000000000004000', '8388608 bytes, but this process has CAP_IPC_LOCK and so no limit'],
])('with capabilities %s the limit of locked memory is %s', (capabilities, expected) => {
  const machine = scripted({
    ...laptop,
    '/proc/self/status': `CapEff:\t${capabilities}`,
  });
  expect(reportOf(machine, facts, [], [])).toContain(`| locked memory (memlock) | ${expected} |`);
});

test.each([
  [300_000, '0.29 MB/s'],
  [2 ** 30, '1024 MB/s'],
])('%d bytes a second are %s', (bytesPerSecond, expected) => {
  const row = { bandwidth: { bytesPerSecond } } as Parameters<typeof figureOf>[1];
  expect(figureOf('atomic_bw', row)).toBe(expected);
});

test('devices come before the fabrics that need none', () => {
  expect(subjectsOf(withDevices(device, { ...device, name: 'mlx5_1', whyNot: 'its port is down' }))).toEqual([
    { fabric: 'verbs', device: 'mlx5_0' },
    { fabric: 'shm' },
    { fabric: 'tcp' },
  ]);
});

describe('the self-test', () => {
  const quick = { sizes: [64], iterations: 50, limitMs: 20_000 };

  test('measures every operation', async () => {
    const { results } = await selfTest({ fabric: 'shm' }, quick);
    expect(results.map(({ test: name, whyNot, rows }) => [name, whyNot, rows.length])).toEqual(
      ['send', 'write', 'read', 'atomic'].flatMap((verb) => [
        [`${verb}_lat`, '', 1],
        [`${verb}_bw`, '', 1],
      ]),
    );
  });

  test('says why an operation was not measured, and goes on', async () => {
    const { results } = await selfTest({ fabric: 'verbs', device: 'absent0' }, quick);
    for (const { rows, whyNot } of results) expect([rows, whyNot]).toEqual([[], expect.stringMatching(/./)]);
  });
});

test('the command writes a report about this machine, without its names', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rdma-rpc-report-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const env = {
    USER: 'planted-user',
    HOME: '/planted/home',
    HOSTNAME: 'planted-host.example',
    SECRET: 'planted-secret',
  };
  const { errors } = await runIn(folder, env, 'doctor', '--report');
  expect(errors).toContain('wrote rdma-rpc-report.md');
  const text = readFileSync(join(folder, 'rdma-rpc-report.md'), 'utf8');
  expect(text).toMatch(/\| send_lat \| 64 \| \d+\.\d+ us/);
  const own = [hostname(), userInfo().username].filter(
    (name) => !['localhost', 'root', 'node'].includes(name),
  );
  for (const secret of [...own, 'planted']) expect(text).not.toContain(secret);
  const { devices } = loadNative().verbsDevices(0);
  if (devices.length === 0) expect(text).toContain('This machine has no RDMA device');
  expect(text).toContain('## Self-test');
}, 60_000);
