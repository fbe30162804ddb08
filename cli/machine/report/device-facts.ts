/**
 * The part of a report about one RDMA device: driver, firmware, PCI link and NUMA node, ports, and
 * capabilities. Only report.ts uses this file; report.ts masks the text later.
 */
import type { VerbsDetails, VerbsDevice, VerbsPort } from '../../../runtime/native/native.ts';
import { rdmaCmMode } from '../check-devices.ts';
import { nodeOf, ownNodes } from '../check-numa.ts';
import { capabilityLines } from '../devices.ts';
import type { Machine } from '../machine.ts';
import type { Fact } from './limits.ts';

const lastOf = (path: string | undefined): string | undefined => path?.split('/').at(-1);

const present = (facts: readonly (readonly [string, string | undefined])[]): Fact[] =>
  facts.flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, value] as const]));

function portFacts(machine: Machine, device: string, port: VerbsPort): Fact[] {
  const folder = `/sys/class/infiniband/${device}/ports/${port.number}`;
  const interfaces = [...new Set(port.gids.map((gid) => gid.interface))].filter((name) => name !== '');
  const mtus = interfaces.map((name) => `${name} ${machine.text(`/sys/class/net/${name}/mtu`) ?? '?'}`);
  const place = `port ${port.number}`;
  return present([
    [place, `${port.state}, ${port.linkLayer}${port.lid === 0 ? '' : `, LID ${port.lid}`}`],
    [`${place} rate`, machine.text(`${folder}/rate`)],
    [`${place} MTU`, `${port.activeMtu} bytes${mtus.length === 0 ? '' : `; interface ${mtus.join(', ')}`}`],
    [`${place} rdma_cm's RoCE mode`, rdmaCmMode(machine, device, port.number)],
    ...port.gids.map((gid) => {
      const name = gid.interface === '' ? '' : `, ${gid.interface}`;
      return [`${place} GID ${gid.index}`, `${gid.gid} (${gid.type}${name})`] as const;
    }),
  ]);
}

/** Returns the facts of one of the kernel's devices, whether programs can use it or not. */
export function deviceFacts(
  machine: Machine,
  name: string,
  device: VerbsDevice | undefined,
  details: VerbsDetails | undefined,
): readonly Fact[] {
  const folder = `/sys/class/infiniband/${name}`;
  const driver = lastOf(machine.link(`${folder}/device/driver`));
  const speed = machine.text(`${folder}/device/current_link_speed`);
  const width = machine.text(`${folder}/device/current_link_width`);
  const node = nodeOf(machine, name);
  const mine = ownNodes(machine);
  return [
    ...present([
      ['driver', driver],
      ['driver version', driver && machine.text(`/sys/module/${driver}/version`)],
      ['firmware', machine.text(`${folder}/fw_ver`)],
      ['board', machine.text(`${folder}/board_id`)],
      ['PCI', speed === undefined ? undefined : `${speed}, ${width ?? '?'} lanes`],
      [
        'NUMA node',
        node === undefined ? undefined : `${node}; this process may run on ${mine.join(', ') || 'any'}`,
      ],
      ['usable', device === undefined || device.whyNot === '' ? undefined : `no: ${device.whyNot}`],
    ]),
    ...(device?.ports ?? []).flatMap((port) => portFacts(machine, name, port)),
    ...(device === undefined || device.capabilities.maxQpWr === 0
      ? []
      : capabilityLines(device.capabilities).map((line) => ['can', line] as const)),
    ...Object.entries(details?.attributes ?? {})
      .filter(([attribute]) => attribute !== 'fw_ver')
      .map(([attribute, value]) => [attribute, String(value)] as const),
    ...(details === undefined || details.flags.length === 0
      ? []
      : [['device_cap_flags', details.flags.join(' ')] as const]),
  ];
}
