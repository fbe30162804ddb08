/**
 * Describes simulated machines, as files and as answers of native code. The tests of `rdma-rpc doctor` and
 * `info` use them.
 */
import type { Facts } from '../../cli/machine/facts.ts';
import type { Machine } from '../../cli/machine/machine.ts';
import type { VerbsCapabilities, VerbsDevice, VerbsPort } from '../../runtime/native/native.ts';

type Files = Readonly<Record<string, string>>;

/**
 * Creates a machine whose file system has these files. `denied` lists paths that exist and must not be
 * opened. Links are files that begin with `-> `.
 */
export function scripted(files: Files, denied: readonly string[] = []): Machine {
  const paths = [...Object.keys(files), ...denied];
  const names = (path: string) => [
    ...new Set(
      paths
        .filter((each) => each.startsWith(`${path}/`))
        .map((each) => each.slice(path.length + 1).split('/')[0]!),
    ),
  ];
  return {
    text: (path) => files[path],
    link: (path) => files[path]?.replace(/^-> /, ''),
    names: (path) => names(path).sort(),
    exists: (path) => paths.includes(path) || names(path).length > 0,
    usable: (path) => path in files && !denied.includes(path),
  };
}

export const capabilities: VerbsCapabilities = {
  maxInline: 512,
  maxSge: 16,
  maxSgeRead: 1,
  maxQpWr: 8192,
  maxSrqWr: 8192,
  maxRdAtomic: 16,
  maxMsgBytes: 2 ** 30,
  maxWriteBytes: 2 ** 30,
  segmentedBytes: 0,
  windows: true,
  immediate: true,
  onDemand: false,
  dmabuf: false,
  pinsMemory: true,
  anyMemory: true,
  copiesLate: false,
  copiedRequestBytes: 0,
  peersKeepAccess: false,
  readsLandInStaging: false,
  notes: [],
};
export const gid = { index: 3, gid: '10.77.0.1', type: 'RoCE v2', interface: 'eth1' };
export const port: VerbsPort = {
  number: 1,
  state: 'ACTIVE',
  linkLayer: 'Ethernet',
  activeMtu: 4096,
  lid: 0,
  gids: [gid],
};
export const device: VerbsDevice = {
  name: 'mlx5_0',
  transport: 'InfiniBand',
  whyNot: '',
  capabilities,
  ports: [port],
};
export const facts: Facts = {
  whyNoAddon: '',
  fabrics: [
    { name: 'shm', whyNot: '' },
    { name: 'verbs', whyNot: 'no RDMA device' },
    { name: 'tcp', whyNot: '' },
  ],
  verbs: { whyNone: 'this machine has no RDMA device', whyNoCm: '', memlock: '', devices: [] },
  ciphers: ['aes-256-gcm', 'chacha20-poly1305'],
  firstBytes: 11 * 2 ** 20,
};
export const withDevices = (...devices: VerbsDevice[]): Facts => ({
  ...facts,
  fabrics: facts.fabrics.map((each) => ({ ...each, whyNot: '' })),
  verbs: { ...facts.verbs, whyNone: '', devices },
});
export const withPort = (change: Partial<VerbsPort>): Facts =>
  withDevices({ ...device, ports: [{ ...port, ...change }] });

export const limits = (bytes: string) =>
  `Limit  Soft Limit  Hard Limit  Units\nMax locked memory         ${bytes}   ${bytes}  bytes`;
export const laptop: Files = {
  '/proc/self/limits': limits('8388608'),
  '/proc/self/status': 'CapEff:\t0000000000000000\nSeccomp:\t0',
  '/proc/self/ns/pid': '-> pid:[4026531836]',
  '/sys/devices/system/cpu/online': '0-7',
  '/sys/class/net/eth0/mtu': '1500',
  '/sys/class/net/eth1/mtu': '9000',
  '/sys/class/net/lo/mtu': '65536',
};
export const server: Files = {
  ...laptop,
  '/proc/self/limits': limits('unlimited'),
  '/sys/class/infiniband/mlx5_0/fw_ver': '22.38.1002',
  '/sys/class/infiniband/mlx5_0/board_id': 'MT_0000000359',
  '/sys/class/infiniband/mlx5_0/ports/1/rate': '100 Gb/sec (4X EDR)',
  '/sys/class/infiniband/mlx5_0/ports/1/phys_state': '5: LinkUp',
  '/sys/class/infiniband_verbs/uverbs0/ibdev': 'mlx5_0',
  '/sys/module/ib_uverbs/version': '',
  '/sys/module/rdma_ucm/version': '',
  '/dev/infiniband/uverbs0': '',
  '/dev/infiniband/rdma_cm': '',
  '/sys/kernel/mm/transparent_hugepage/enabled': 'always [madvise] never',
};
export const without = (files: Files, path: RegExp): Files =>
  Object.fromEntries(Object.entries(files).filter(([each]) => !path.test(each)));
