/**
 * `rdma-rpc links`: prints the links of the RDMA ports of this machine, as the kernel's files describe them.
 * The command works without access to the devices and without the rights of a subnet manager.
 */
import type { Command } from '#commander';
import {
  type DeviceCounters,
  isTrouble,
  readDeviceCounters,
} from '../../runtime/counters/device-counters.ts';
import { jsonText, printableLine } from '../output.ts';
import { kernelDevices, type Machine, machineAt } from './machine.ts';

export interface Link {
  readonly device: string;
  readonly port: number;
  /** The state of the port, such as ACTIVE, INIT or DOWN. */
  readonly state: string;
  /** The state of the physical link, such as LinkUp or Polling. */
  readonly physicalState: string;
  /** Bit rate with the number and speed of the link's lanes, such as `100 Gb/sec (4X EDR)`. */
  readonly rate: string;
  /** `InfiniBand` or `Ethernet`. */
  readonly linkLayer: string;
  /** The value is 0 on Ethernet, and before a subnet manager has configured the port. */
  readonly lid: number;
  readonly smLid: number;
  /** The network interfaces whose addresses are GIDs of the port. */
  readonly netdevs: readonly string[];
  /** The error counters that are not 0. */
  readonly errors: Readonly<Record<string, number>>;
}

/** Returns `ACTIVE` for `4: ACTIVE`. */
const wordOf = (text: string | undefined): string => (text ?? 'unknown').replace(/^\d+: /, '');

function netdevsOf(machine: Machine, folder: string): readonly string[] {
  const ofGids = machine.names(`${folder}/gid_attrs/ndevs`).map((index) => {
    // Reading the file of an unused GID fails.
    return machine.text(`${folder}/gid_attrs/ndevs/${index}`) ?? '';
  });
  return [...new Set(ofGids)].filter((name) => name !== '').sort();
}

function linkOf(machine: Machine, device: string, port: string, all: readonly DeviceCounters[]): Link {
  const folder = `/sys/class/infiniband/${device}/ports/${port}`;
  const lid = (name: string): number => Number(machine.text(`${folder}/${name}`) ?? 0) || 0;
  const counted = all.find((each) => each.device === device && each.port === Number(port));
  const errors = Object.entries(counted?.counters ?? {}).filter(
    ([name, value]) => value > 0 && isTrouble(name),
  );
  return {
    device,
    port: Number(port),
    state: wordOf(machine.text(`${folder}/state`)),
    physicalState: wordOf(machine.text(`${folder}/phys_state`)),
    rate: machine.text(`${folder}/rate`) ?? '',
    linkLayer: machine.text(`${folder}/link_layer`) ?? 'unknown',
    lid: lid('lid'),
    smLid: lid('sm_lid'),
    netdevs: netdevsOf(machine, folder),
    errors: Object.fromEntries(errors),
  };
}

/** Returns a link for each port. `counters` has the counters of all devices. */
export function linksOf(machine: Machine, counters: readonly DeviceCounters[]): Link[] {
  return kernelDevices(machine).flatMap((device) =>
    machine
      .names(`/sys/class/infiniband/${device}/ports`)
      .map((port) => linkOf(machine, device, port, counters)),
  );
}

/** Returns a remedy that follows from the link's state, or undefined for a link that works. */
function remedyOf({ state, physicalState, linkLayer, smLid, netdevs }: Link): string | undefined {
  if (state === 'ACTIVE') return undefined;
  if (linkLayer === 'Ethernet') {
    const name = netdevs[0] ?? 'its interface';
    return `ip link set ${name} up; the cable and the switch`;
  }
  if (physicalState !== 'LinkUp') return 'the cable and the switch: the two ends do not see each other';
  return smLid === 0
    ? 'a subnet manager (opensm): none has configured this port'
    : 'the subnet manager, whose log says why it does not activate the port';
}

function linkLines(link: Link): string[] {
  const { device, port, state, physicalState, rate, linkLayer, lid, smLid, netdevs, errors } = link;
  const about = [
    state,
    physicalState,
    rate,
    linkLayer,
    linkLayer === 'InfiniBand' && `LID ${lid}, SM LID ${smLid}`,
    netdevs.length > 0 && `interface ${netdevs.join(', ')}`,
  ];
  const counted = Object.entries(errors).map(([name, value]) => `${name} ${value}`);
  const remedy = remedyOf(link);
  return [
    `${device} port ${port}: ${about.filter(Boolean).join(', ')}`,
    ...(counted.length === 0 ? [] : [`  has counted: ${counted.join(', ')}`]),
    ...(remedy === undefined ? [] : [`  → ${remedy}`]),
  ].map(printableLine);
}

export function linksText(links: readonly Link[]): string {
  return links.length === 0
    ? 'this machine has no RDMA device (for tests: modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0)'
    : links.flatMap(linkLines).join('\n');
}

export function addLinksCommand(program: Command): void {
  program
    .command('links')
    .description('show the links of RDMA ports: state, rate, LIDs, interfaces, and error counters above 0')
    .option('--json', 'print JSON for programs; docs/schemas describes it')
    .action(async ({ json }: { json?: true }) => {
      const links = linksOf(machineAt(), await readDeviceCounters());
      console.log(json === true ? jsonText({ links }, 2) : linksText(links));
    });
}
