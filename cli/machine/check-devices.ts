/** Checks of `rdma-rpc doctor`: RDMA devices, their modules, files, ports, GIDs and MTUs. */
import type { VerbsDevice, VerbsPort } from '../../runtime/native/native.ts';
import type { Facts } from './facts.ts';
import { advice, type Finding, ok, problem } from './findings.ts';
import { kernelDevices, type Machine, numberIn } from './machine.ts';

const files = '/dev/infiniband';

export function checkDevices(machine: Machine, { verbs }: Facts): Finding[] {
  if (kernelDevices(machine).length === 0)
    return [
      advice(
        'devices',
        'no RDMA device: only shm, shm-fd and tcp are available',
        'for tests: modprobe rdma_rxe && rdma link add rxe0 type rxe netdev eth0',
      ),
    ];
  if (verbs.devices.length === 0)
    return [problem('devices', verbs.whyNone, 'see the checks of modules and files')];
  return verbs.devices.map(({ name, transport, whyNot }) =>
    whyNot === ''
      ? ok('devices', `${name} (${transport}) can be used`)
      : problem(
          'devices',
          `${name} cannot be used: ${whyNot}`,
          'see the message, or use another device (verbs.device)',
        ),
  );
}

export function checkModules(machine: Machine, { verbs }: Facts): Finding[] {
  if (kernelDevices(machine).length === 0) return [];
  const found: Finding[] = [];
  const loaded = (name: string): boolean => machine.exists(`/sys/module/${name}`);
  if (!loaded('ib_uverbs') && machine.names('/sys/class/infiniband_verbs').length === 0)
    found.push(
      problem('modules', 'ib_uverbs is not loaded: no program can use a device', 'modprobe ib_uverbs'),
    );
  if (!loaded('rdma_ucm') && verbs.whyNoCm !== '')
    found.push(
      advice(
        'modules',
        'rdma_ucm is not loaded: no rdma_cm, which iWARP needs and others are quicker to connect with',
        'modprobe rdma_ucm',
      ),
    );
  else if (verbs.whyNoCm !== '')
    found.push(advice('modules', `rdma_cm cannot be used: ${verbs.whyNoCm}`, `rights on ${files}/rdma_cm`));
  return found.length === 0 ? [ok('modules', 'ib_uverbs and rdma_ucm are loaded')] : found;
}

export function checkFiles(machine: Machine): Finding[] {
  const wanted = machine.names('/sys/class/infiniband_verbs').filter((name) => /^uverbs\d+$/.test(name));
  if (wanted.length === 0) return [];
  if (!machine.exists(files))
    return [
      problem(
        'files',
        `${files} is missing: the devices are not in this container`,
        `docker --device=${files}; in Kubernetes an RDMA device plug-in`,
      ),
    ];
  const denied = wanted.filter((name) => !machine.usable(`${files}/${name}`));
  if (denied.length === 0) return [ok('files', `${files}/${wanted.join(', ')} can be read and written`)];
  return denied.map((name) =>
    machine.exists(`${files}/${name}`)
      ? problem(
          'files',
          `no permission on ${files}/${name}`,
          'become a member of its group (often rdma), or chmod 666',
        )
      : problem('files', `${files}/${name} is missing`, `docker --device=${files} brings all of its files`),
  );
}

const placeOf = ({ name }: VerbsDevice, { number }: VerbsPort): string => `${name} port ${number}`;

/** Checks ports, GIDs and MTUs of the devices that can be opened. */
export function checkPorts(machine: Machine, { verbs }: Facts): Finding[] {
  const all = verbs.devices.flatMap((device) => device.ports.map((port) => ({ device, port })));
  const active = all.filter(({ port }) => port.state === 'ACTIVE');
  const found = all
    .filter(({ port }) => port.state !== 'ACTIVE')
    .map(({ device, port }) => {
      const what = `${placeOf(device, port)} is ${port.state}`;
      const remedy =
        port.linkLayer === 'InfiniBand'
          ? 'the cable, the switch, and a subnet manager (opensm)'
          : 'the cable, and ip link set up of its interface';
      return (active.length === 0 ? problem : advice)('ports', what, remedy);
    });
  for (const { device, port } of active)
    found.push(...checkGids(device, port), ...checkMtu(machine, device, port));
  return found;
}

function checkGids(device: VerbsDevice, port: VerbsPort): Finding[] {
  if (port.linkLayer !== 'Ethernet' || device.transport === 'iWARP') return [];
  const place = placeOf(device, port);
  if (port.gids.length === 0)
    return [
      problem('gids', `${place} has no GID`, 'give its network interface an IP address: ip addr add … dev …'),
    ];
  const routed = port.gids.filter(({ gid, type }) => type === 'RoCE v2' && !gid.startsWith('fe80:'));
  if (routed.length > 0) return [ok('gids', `${place}: ${routed[0]!.gid} (${routed[0]!.type})`)];
  const only = port.gids.some(({ type }) => type === 'RoCE v2') ? 'link-local addresses' : 'RoCE v1';
  return [
    advice(
      'gids',
      `${place} has ${only} only: peers behind a router cannot be reached`,
      'give its network interface an IPv4 address; RoCE v2 must be on (cma_roce_mode)',
    ),
  ];
}

/** Bytes of the headers of a RoCE packet, rounded up. */
const roceHeaders = 64;

function checkMtu(machine: Machine, device: VerbsDevice, port: VerbsPort): Finding[] {
  if (port.linkLayer !== 'Ethernet' || device.transport === 'iWARP' || port.activeMtu >= 4096) return [];
  const interfaces = [...new Set(port.gids.map((gid) => gid.interface))].filter((name) => name !== '');
  return interfaces.flatMap((name) => {
    const mtu = numberIn(machine, `/sys/class/net/${name}/mtu`);
    if (mtu === undefined) return [];
    const what = `${placeOf(device, port)} sends ${port.activeMtu} bytes a packet, as ${name} has an MTU of ${mtu}`;
    const remedy = `ip link set ${name} mtu ${4096 + roceHeaders} or more, on both hosts and the switches between`;
    return [advice('mtu', what, remedy)];
  });
}

/**
 * Finds active ports whose MTUs differ. A port with the smaller MTU may not receive the large packets of the
 * other port.
 */
export function checkMtuMismatch(_: Machine, { verbs }: Facts): Finding[] {
  const active = verbs.devices.flatMap((device) =>
    device.ports
      .filter(({ state }) => state === 'ACTIVE')
      .map((port) => ({ place: placeOf(device, port), port })),
  );
  const differs = active.find(
    ({ port }) =>
      port.linkLayer === active[0]!.port.linkLayer && port.activeMtu !== active[0]!.port.activeMtu,
  );
  if (differs === undefined) return [];
  const [first] = active;
  return [
    advice(
      'mtu',
      `${first!.place} has an MTU of ${first!.port.activeMtu}, ${differs.place} one of ${differs.port.activeMtu}`,
      'the same on all hosts and switches of a network',
    ),
  ];
}

/** Returns the RoCE version that rdma_cm uses on a port, or undefined when the kernel has no file for it. */
export const rdmaCmMode = (machine: Machine, device: string, port: number): string | undefined =>
  machine.text(`/sys/kernel/config/rdma_cm/${device}/ports/${port}/default_roce_mode`);

/** Finds ports with RoCE v2 on which an administrator has set rdma_cm to RoCE v1. */
export function checkRdmaCmMode(machine: Machine, { verbs }: Facts): Finding[] {
  return verbs.devices.flatMap((device) =>
    device.ports
      .filter(({ gids }) => gids.some(({ type }) => type === 'RoCE v2'))
      .filter(({ number }) => /v1$/.test(rdmaCmMode(machine, device.name, number) ?? ''))
      .map((port) =>
        advice(
          'rdma_cm',
          `${placeOf(device, port)} has RoCE v2, and rdma_cm is set to RoCE v1: peers behind a router cannot be reached with connect: 'cm'`,
          `cma_roce_mode -d ${device.name} -p ${port.number} -m 2`,
        ),
      ),
  );
}
