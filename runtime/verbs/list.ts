/**
 * Lists the devices of this machine.
 */
import { loadNative, type VerbsCapabilities, type VerbsDetails, type VerbsPort } from '../native/native.ts';
import { openDevice } from './device.ts';
import { VerbsError } from './errors.ts';

/** A device that `openDevice` can open. See ibv_get_device_list(3) and ibv_query_device(3). */
export interface DeviceInfo {
  readonly name: string;
  /** `software` for sim, shm and tcp; `InfiniBand` (RoCE too) or `iWARP` for RDMA devices. */
  readonly transport: string;
  /** The reason why the device cannot be opened; '' when it can be opened. */
  readonly whyNot: string;
  /** Undefined when the device cannot be opened. */
  readonly capabilities: Readonly<VerbsCapabilities> | undefined;
  /** The ports of an RDMA device. See ibv_query_port(3). */
  readonly ports: readonly VerbsPort[];
}

function softwareDevice(name: 'sim' | 'shm' | 'tcp'): DeviceInfo {
  const known = { name, transport: 'software', ports: [] };
  try {
    using device = openDevice(name);
    return { ...known, whyNot: '', capabilities: device.capabilities };
  } catch (error) {
    return { ...known, whyNot: (error as Error).message, capabilities: undefined };
  }
}

/**
 * Returns all attributes of an RDMA device and of its ports, by their names in libibverbs and as text. See
 * ibv_query_device(3), ibv_query_port(3) and ibv_query_pkey(3). Throws when the device does not exist or
 * cannot be opened. Devices made of software have only `Device.capabilities`.
 */
export function queryDevice(name: string): VerbsDetails {
  const all = loadNative().verbsDetails();
  const found = all.find((each) => each.name === name);
  if (found === undefined) {
    const names = all.map((each) => each.name).join(', ') || 'none';
    throw new VerbsError(
      'refused',
      `queryDevice: '${name}' is no RDMA device of this machine, which has ${names}`,
    );
  }
  if (found.whyNot !== '') throw new VerbsError('refused', `queryDevice: ${found.whyNot}`);
  return found;
}

/**
 * Lists the devices of this machine: first the software devices, then the RDMA devices. It opens and closes
 * each of them to determine its capabilities, which takes some ms for each RDMA device.
 */
export function listDevices(): DeviceInfo[] {
  const { devices } = loadNative().verbsDevices(1);
  return [
    ...(['sim', 'shm', 'tcp'] as const).map(softwareDevice),
    ...devices.map(({ name, transport, whyNot, capabilities, ports }) => ({
      name,
      transport,
      whyNot,
      capabilities: whyNot === '' ? capabilities : undefined,
      ports,
    })),
  ];
}
