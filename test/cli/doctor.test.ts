/**
 * Tests `rdma-rpc doctor` and `info`: tables of simulated machines, their screens, and one run on the machine
 * that runs the tests.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { examine } from '../../cli/machine/checks.ts';
import { type Facts, factsHere } from '../../cli/machine/facts.ts';
import { findingsText } from '../../cli/machine/findings.ts';
import { type Machine, machineAt } from '../../cli/machine/machine.ts';
import { run } from './command.ts';
import { expectSchema } from './schemas.ts';
import {
  device,
  facts,
  gid,
  laptop,
  limits,
  port,
  scripted,
  server,
  withDevices,
  without,
  withPort,
} from './scripted-machine.ts';

test.each<[string, Machine, Facts]>([
  ['a laptop', scripted(laptop), facts],
  ['a server with a NIC', scripted(server), withDevices(device)],
])('%s has no finding', (_, machine, known) => {
  const levels = examine(machine, known).filter(({ level }) => level === 'problem');
  expect(levels).toEqual([]);
});

/** Returns a machine with two NUMA nodes of four processors each; the device is on the second one. */
const onNodes = (files: Readonly<Record<string, string>>, allowed: string) => ({
  ...files,
  '/proc/self/status': `CapEff:\t0000000000000000\nSeccomp:\t0\nCpus_allowed_list:\t${allowed}`,
  '/sys/devices/system/node/node0/cpulist': '0-3',
  '/sys/devices/system/node/node1/cpulist': '4-7',
  '/sys/class/infiniband/mlx5_0/device/numa_node': '1',
});

describe('each finding has its remedy', () => {
  const nic = withDevices(device);
  test.each<[string, Machine, Facts, string, RegExp, RegExp]>([
    [
      'the addon does not load',
      scripted(laptop),
      { ...facts, whyNoAddon: 'glibc is too old', fabrics: [] },
      'problem addon',
      /glibc is too old/,
      /build-addon/,
    ],
    [
      'shm does not open',
      scripted(laptop),
      { ...facts, fabrics: [{ name: 'shm', whyNot: 'memfd_create: EPERM' }] },
      'problem fabrics',
      /shm cannot be used: memfd_create/,
      /other fabrics/,
    ],
    ['no device', scripted(laptop), facts, 'advice devices', /no RDMA device/, /rdma link add rxe0/],
    [
      'a device that cannot be used',
      scripted(server),
      withDevices({ ...device, whyNot: 'max_inline_data is 0' }),
      'problem devices',
      /mlx5_0 cannot be used: max_inline_data/,
      /another device/,
    ],
    [
      'the module ib_uverbs is missing',
      scripted(without(server, /uverbs/)),
      { ...facts, verbs: { ...facts.verbs, whyNone: 'load ib_uverbs' } },
      'problem modules',
      /ib_uverbs is not loaded/,
      /^modprobe ib_uverbs$/,
    ],
    [
      'the module rdma_ucm is missing',
      scripted(without(server, /rdma_ucm/)),
      { ...nic, verbs: { ...nic.verbs, whyNoCm: 'no rdma_cm' } },
      'advice modules',
      /rdma_ucm is not loaded/,
      /^modprobe rdma_ucm$/,
    ],
    [
      'a container without the device files',
      scripted(without(server, /^\/dev/)),
      facts,
      'problem files',
      /\/dev\/infiniband is missing:/,
      /--device=\/dev\/infiniband/,
    ],
    [
      'a container with some of the device files',
      scripted(without(server, /dev.*uverbs0/)),
      facts,
      'problem files',
      /\/dev\/infiniband\/uverbs0 is missing/,
      /all of its files/,
    ],
    [
      'no permission for the device files',
      scripted(without(server, /dev.*uverbs0/), ['/dev/infiniband/uverbs0']),
      facts,
      'problem files',
      /no permission on \/dev\/infiniband\/uverbs0/,
      /group/,
    ],
    [
      'the only port is down',
      scripted(server),
      withPort({ state: 'DOWN' }),
      'problem ports',
      /mlx5_0 port 1 is DOWN/,
      /ip link set up/,
    ],
    [
      'one of two ports is down',
      scripted(server),
      withDevices({
        ...device,
        ports: [port, { ...port, number: 2, state: 'DOWN', linkLayer: 'InfiniBand' }],
      }),
      'advice ports',
      /port 2 is DOWN/,
      /subnet manager/,
    ],
    ['no GID', scripted(server), withPort({ gids: [] }), 'problem gids', /has no GID/, /ip addr add/],
    [
      'RoCE v1 only',
      scripted(server),
      withPort({ gids: [{ ...gid, type: 'RoCE v1' }] }),
      'advice gids',
      /RoCE v1 only/,
      /cma_roce_mode/,
    ],
    [
      'link-local addresses only',
      scripted(server),
      withPort({ gids: [{ ...gid, gid: 'fe80::1' }] }),
      'advice gids',
      /link-local addresses only/,
      /IPv4/,
    ],
    [
      'a small MTU',
      scripted({ ...server, '/sys/class/net/eth1/mtu': '1500' }),
      withPort({ activeMtu: 1024 }),
      'advice mtu',
      /sends 1024 bytes a packet, as eth1 has an MTU of 1500/,
      /mtu 4160/,
    ],
    [
      'two MTUs',
      scripted(server),
      withDevices(device, {
        ...device,
        name: 'mlx5_1',
        ports: [{ ...port, activeMtu: 1024, gids: [{ ...gid, interface: '' }] }],
      }),
      'advice mtu',
      /mlx5_0 port 1 has an MTU of 4096, mlx5_1 port 1 one of 1024/,
      /same/,
    ],
    [
      'a device on the other NUMA node',
      scripted(onNodes(server, '0-3')),
      nic,
      'advice numa',
      /mlx5_0 is on NUMA node 1, and this process may run on node 0$/,
      /numactl --cpunodebind=1 --membind=1/,
    ],
    [
      'a process on all NUMA nodes',
      scripted(onNodes(server, '2-5')),
      nic,
      'advice numa',
      /may run on nodes 0, 1$/,
      /cpuset of the container/,
    ],
    [
      'rdma_cm on RoCE v1',
      scripted({
        ...server,
        '/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode': 'IB/RoCE v1',
      }),
      nic,
      'advice rdma_cm',
      /mlx5_0 port 1 has RoCE v2, and rdma_cm is set to RoCE v1/,
      /^cma_roce_mode -d mlx5_0 -p 1 -m 2$/,
    ],
    [
      'a low limit for locked memory',
      scripted({ ...server, '/proc/self/limits': limits('65536') }),
      nic,
      'problem memlock',
      /64 KiB .* needs 11 MiB/,
      /ulimit -l unlimited/,
    ],
    [
      'a limit for locked memory below the arena',
      scripted({ ...server, '/proc/self/limits': limits('67108864') }),
      nic,
      'advice memlock',
      /64 MiB .* less than the 256 MiB/,
      /memlock=-1/,
    ],
    [
      'no huge pages',
      scripted({ ...server, '/sys/kernel/mm/transparent_hugepage/enabled': 'always madvise [never]' }),
      nic,
      'advice huge pages',
      /are off/,
      /echo madvise/,
    ],
    [
      'a frequency governor that saves power',
      scripted({ ...laptop, '/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor': 'powersave' }),
      facts,
      'advice processor',
      /governor is powersave/,
      /cpupower/,
    ],
    [
      'deep sleep states of the processor',
      scripted({
        ...laptop,
        '/sys/devices/system/cpu/cpu0/cpuidle/state3/latency': '133',
        '/sys/devices/system/cpu/cpu0/cpuidle/state3/name': 'C6',
      }),
      facts,
      'advice processor',
      /C6 takes 133 us/,
      /polling: 'busy'/,
    ],
    [
      'a single processor',
      scripted({ ...laptop, '/sys/devices/system/cpu/online': '0' }),
      facts,
      'advice polling',
      /one processor/,
      /polling: 'event'/,
    ],
    [
      'half a processor',
      scripted({ ...laptop, '/sys/fs/cgroup/cpu.max': '50000 100000' }),
      facts,
      'advice polling',
      /allows 0.5 processors/,
      /polling: 'event'/,
    ],
    [
      'another pid namespace',
      scripted({ ...laptop, '/proc/self/ns/pid': '-> pid:[4026532800]' }),
      facts,
      'advice container',
      /separate pid namespace/,
      /shareProcessNamespace/,
    ],
    [
      'seccomp',
      scripted({ ...laptop, '/proc/self/status': 'Seccomp:\t2' }),
      facts,
      'advice container',
      /seccomp/,
      /process_vm_readv/,
    ],
    [
      'a container with its own network',
      scripted({ ...without(server, /eth0/), '/.dockerenv': '' }),
      nic,
      'advice container',
      /separate network namespace/,
      /--network=host/,
    ],
  ])('%s', (_, machine, known, which, what, remedy) => {
    const found = examine(machine, known).filter(({ check, level }) => `${level} ${check}` === which);
    const text = found.map((each) => each.what).join('\n');
    expect(text).toMatch(what);
    expect(found.map((each) => each.remedy).join('\n')).toMatch(remedy);
  });

  test('a process that may lock any amount has no limit', () => {
    const machine = scripted({
      ...server,
      '/proc/self/limits': limits('65536'),
      '/proc/self/status': 'CapEff:\t0000000000004000',
    });
    const found = examine(machine, nic).find(({ check }) => check === 'memlock');
    expect(found).toEqual({ check: 'memlock', level: 'ok', what: 'locked memory is not limited' });
  });
});

test('a device on the NUMA node of the process is in order', () => {
  const found = examine(scripted(onNodes(server, '4-7')), withDevices(device));
  expect(found.filter(({ check }) => check === 'numa')).toEqual([
    { check: 'numa', level: 'ok', what: 'mlx5_0 and this process are on node 1' },
  ]);
  // A machine with one node has the value -1.
  const single = { ...onNodes(server, '4-7'), '/sys/class/infiniband/mlx5_0/device/numa_node': '-1' };
  expect(examine(scripted(single), withDevices(device)).filter(({ check }) => check === 'numa')).toEqual([]);
});

test('rdma_cm on RoCE v2 is no finding', () => {
  const machine = scripted({
    ...server,
    '/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode': 'RoCE v2',
  });
  expect(examine(machine, withDevices(device)).filter(({ check }) => check === 'rdma_cm')).toEqual([]);
});

test('doctor prints its findings', () => {
  const machine = scripted({ ...server, '/proc/self/limits': limits('65536') });
  const findings = examine(machine, withPort({ gids: [] }));
  expectSchema('doctor', { findings });
  expect(`\n${findingsText(findings)}\n`).toMatchInlineSnapshot(`
    "
    ok       addon       the native addon loads
    ok       fabrics     shm can be used
    ok       fabrics     tcp can be used
    ok       devices     mlx5_0 (InfiniBand) can be used
    ok       modules     ib_uverbs and rdma_ucm are loaded
    ok       files       /dev/infiniband/uverbs0 can be read and written
    problem  gids        mlx5_0 port 1 has no GID
                         → give its network interface an IP address: ip addr add … dev …
    problem  memlock     64 KiB of memory may be locked (RLIMIT_MEMLOCK), and a first session on a device needs 11 MiB
                         → ulimit -l unlimited, LimitMEMLOCK=infinity in a systemd unit, memlock in /etc/security/limits.conf, --ulimit memlock=-1 for a container
    ok       huge pages  transparent huge pages: madvise
    ok       processor   8 online
    ok       polling     'adaptive' suits; 'busy' only with a processor for each thread
    ok       container   none

    2 problems, 0 pieces of advice, 10 in order
    "
  `);
});

test('files of a machine are read under another root', () => {
  const root = mkdtempSync(join(tmpdir(), 'rdma-rpc-root-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  for (const [path, text] of Object.entries(server)) if (!text.startsWith('-> ')) write(path, `${text}\n`);
  mkdirSync(join(root, 'proc/self/ns'));
  symlinkSync('pid:[4026531836]', join(root, 'proc/self/ns/pid'));
  chmodSync(join(root, 'dev/infiniband/uverbs0'), 0o666);
  expect(examine(machineAt(root), withDevices(device))).toEqual(
    examine(scripted(server), withDevices(device)),
  );
  const bare = machineAt(join(root, 'nowhere'));
  expect([bare.text('/x'), bare.link('/x'), bare.names('/x'), bare.exists('/x'), bare.usable('/x')]).toEqual([
    undefined,
    undefined,
    [],
    false,
    false,
  ]);
});

describe('on this machine', () => {
  test('info ends with 0', async () => {
    const { code, out } = await run('info', '--json');
    const info = expectSchema('info', JSON.parse(out) as { fabrics: { name: string }[] });
    expect([code, info.fabrics.map(({ name }) => name)]).toEqual([0, ['shm', 'shm-fd', 'verbs', 'tcp']]);
    expect(await run('info')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^rdma-rpc [\s\S]*\nshm: can/),
    });
  });

  test('the exit code of doctor shows whether something does not work', async () => {
    const { code, out } = await run('doctor', '--json');
    const { findings } = expectSchema('doctor', JSON.parse(out) as { findings: { level: string }[] });
    expect(code).toBe(findings.some(({ level }) => level === 'problem') ? 1 : 0);
    const wanted = factsHere().fabrics.find(({ name }) => name === 'verbs')?.whyNot === '' ? 0 : 1;
    expect((await run('doctor', '--fabric', 'verbs')).code).toBe(Math.max(code, wanted));
    expect((await run('doctor', '--fabric', 'carrier-pigeon')).code).toBe(2);
  });
});
