/** The devices of this machine. */
import { loadNative, type VerbsCapabilities, type VerbsDetails, type VerbsPort } from '../native/native.ts';
import { openDevice } from './device.ts';
import { VerbsError } from './errors.ts';

/** A device that `openDevice` knows. See ibv_get_device_list(3) and ibv_query_device(3). */
export interface DeviceInfo {
  readonly name: string;
  /** `software` for sim, shm and tcp; `InfiniBand` (RoCE too) or `iWARP` for RDMA devices. */
  readonly transport: string;
  /** Why it cannot be opened; '' when it can. */
  readonly whyNot: string;
  /** Undefined when it cannot be opened. */
  readonly capabilities: Readonly<VerbsCapabilities> | undefined;
  /** Of RDMA devices. See ibv_query_port(3). */
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
 * ibv_query_device(3), ibv_query_port(3) and ibv_query_pkey(3). Throws for a device that is not there or
 * cannot be opened; devices made of software have `Device.capabilities` only.
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
 * Lists the devices of this machine: those made of software, then the RDMA devices. Opens and closes each of
 * them to see what it can do (for RDMA devices, some ms each).
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
