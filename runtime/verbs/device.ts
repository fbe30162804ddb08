/**
 * Devices: opens a device by its name, reports its capabilities, and makes its objects.
 */
import { checkedOptions } from '../core/options.ts';
import { loadNative, type VerbsCapabilities } from '../native/native.ts';
import type { NativeOpenOptions, NativeVerbsDevice } from '../native/verbs-device.ts';
import { type CompletionQueue, OpenCompletionQueue } from './completion-queue.ts';
import { type Feature, features } from './constants.ts';
import { checkedInteger, granted, VerbsError } from './errors.ts';
import { type DeviceEvent, eventsOf } from './events.ts';
import { type DeviceParts, OpenProtectionDomain, type ProtectionDomain } from './protection-domain.ts';
import { Resource } from './resource.ts';

/** Options that decide how a device is opened. */
export interface OpenOptions {
  /**
   * The seed of the world that the device is in, for sim. Devices of one thread with the same options are in
   * one world, where their queue pairs can connect. Default 1.
   */
  seed?: number;
  /** The chance that a packet of UC or UD is lost, in millionths, for sim. Default 0. */
  lossPpm?: number;
  /** The chance that a packet of UC or UD arrives twice, in millionths, for sim. Default 0. */
  duplicatePpm?: number;
  /** The IP address of this host where connections are accepted, for tcp. Default `127.0.0.1`. */
  host?: string;
  /** The port of an RDMA device. Default: the first active port. */
  port?: number;
  /** The index in the GID table of an RDMA device. By default RoCE v2 on IPv4 is preferred. */
  gidIndex?: number;
  /**
   * The index in the table of P_Keys of an RDMA device's port, which names the partition of queue pairs that
   * are connected by the contents of their addresses. rdma_cm finds the partition itself. Both sides need the
   * same partition. `queryDevice` shows the table. Default 0. See ibv_query_pkey(3).
   */
  pkeyIndex?: number;
  /**
   * The way in which an RDMA device connects: `cm` connects by rdma_cm; `sideband` connects by the contents
   * of the addresses. Default `auto`, which uses rdma_cm where both sides have it.
   */
  connect?: 'auto' | 'cm' | 'sideband';
  /** Memory of an RDMA device may be registered with `Access.onDemand`. Default false. */
  onDemand?: boolean;
}

/** An open device (`struct ibv_context`). See ibv_open_device(3). */
export interface Device extends Disposable {
  readonly name: string;
  /**
   * The capabilities of the device: its limits in the units of libibverbs, and its features. See
   * ibv_query_device(3).
   */
  readonly capabilities: Readonly<VerbsCapabilities>;
  /**
   * Makes a protection domain. A device has one protection domain at a time. If memory and queue pairs must
   * not reach each other, the application opens the device again for them. See ibv_alloc_pd(3).
   */
  allocPd(): ProtectionDomain;
  /**
   * Makes a completion queue. `depth` is the number of completions that it has room for at first. It grows
   * with its queue pairs, so that it never overruns. See ibv_create_cq(3).
   */
  createCq(depth?: number): CompletionQueue;
  /** Returns the reason why the device lacks that feature, or undefined when the device has it. */
  whyNot(feature: Feature): string | undefined;
  /**
   * The GID that peers need to send datagrams to this device, or all 0 when the device has no GID. See
   * ibv_query_gid(3).
   */
  readonly gid: Uint8Array;
  /**
   * The events other than completions that the device reports, until it is closed. See
   * ibv_get_async_event(3).
   */
  readonly events: AsyncIterableIterator<DeviceEvent>;
  readonly closed: boolean;
  /**
   * Closes the device (ibv_close_device(3)). The objects that it has made work until they are closed
   * themselves.
   */
  close(): void;
}

const defaultDepth = 256;
const depthMax = 1 << 22;
const software = ['sim', 'shm', 'tcp'] as const;
export type SoftwareDevice = (typeof software)[number];

const openRules = {
  seed: { kind: 'integer', range: { default: 1, min: 0, max: Number.MAX_SAFE_INTEGER } },
  lossPpm: { kind: 'integer', range: { default: 0, min: 0, max: 1_000_000 } },
  duplicatePpm: { kind: 'integer', range: { default: 0, min: 0, max: 1_000_000 } },
  host: { kind: 'text', default: '', maxBytes: 64 },
  port: { kind: 'integer', range: { default: undefined, min: 1, max: 255 } },
  gidIndex: { kind: 'integer', range: { default: undefined, min: 0, max: 255 } },
  pkeyIndex: { kind: 'integer', range: { default: undefined, min: 0, max: 0xffff } },
  connect: { kind: 'choice', values: ['auto', 'cm', 'sideband'], default: 'auto' },
  onDemand: { kind: 'boolean', default: false },
} as const;

interface CheckedOpenOptions {
  readonly seed: number;
  readonly lossPpm: number;
  readonly duplicatePpm: number;
  readonly host: string;
  readonly onDemand: boolean;
  readonly port?: number;
  readonly gidIndex?: number;
  readonly pkeyIndex?: number;
  readonly connect: 'auto' | 'cm' | 'sideband';
}

class OpenDevice extends Resource implements Device, DeviceParts {
  readonly capabilities: Readonly<VerbsCapabilities>;
  readonly native: NativeVerbsDevice;
  readonly #made = new Set<Resource>();
  #pd: OpenProtectionDomain | undefined;

  constructor(name: string, native: NativeVerbsDevice) {
    super(name);
    this.native = native;
    this.capabilities = Object.freeze({ ...native.capabilities });
  }

  allocPd(): ProtectionDomain {
    this.check();
    if (this.#pd?.closed === false) {
      throw new VerbsError(
        'state',
        `allocPd: ${this.name} has a protection domain; close it, or open the device again for another one`,
      );
    }
    this.#pd = this.track(new OpenProtectionDomain(this));
    return this.#pd;
  }

  createCq(depth = defaultDepth): CompletionQueue {
    this.check();
    checkedInteger('createCq(depth)', depth, 1, depthMax);
    const number = granted('createCq', this.native.createCq(depth));
    return this.track(new OpenCompletionQueue(this.native, this.name, number));
  }

  whyNot(feature: Feature): string | undefined {
    this.check();
    const number = features.indexOf(feature);
    if (number < 0)
      throw new TypeError(
        `whyNot(feature): ${String(feature)} is not a feature; use one of ${features.join(', ')}`,
      );
    return this.native.whyNot(number) || undefined;
  }
  get gid(): Uint8Array {
    this.check();
    return granted('gid', this.native.gid());
  }
  get events(): AsyncIterableIterator<DeviceEvent> {
    this.check();
    return eventsOf(this.native, () => this.closed);
  }

  track<Made extends Resource>(made: Made): Made {
    this.#made.add(made);
    made.onClose(() => {
      this.#made.delete(made);
      this.#endIfUnused();
    });
    return made;
  }

  protected override release(): void {
    this.#endIfUnused();
  }
  #endIfUnused(): void {
    if (this.closed && this.#made.size === 0) this.native.close();
  }
}

/**
 * Opens a device by its name: `sim` (queue pairs of this thread, simulated), `shm` (processes of this user on
 * this host), `tcp` (any two hosts), or an RDMA device such as `mlx5_0` (`listDevices()` returns their
 * names). The first three are RDMA devices made of software. They behave like other RDMA devices. Throws the
 * reason when the device cannot be opened. See ibv_open_device(3).
 */
export function openDevice(name: SoftwareDevice | (string & {}), options: OpenOptions = {}): Device {
  if (typeof name !== 'string' || name === '')
    throw new TypeError("openDevice(name): takes the name of a device, such as 'sim'");
  const { seed, lossPpm, duplicatePpm, host, onDemand, ...verbs } = checkedOptions<CheckedOpenOptions>(
    'openDevice',
    options,
    openRules,
  );
  const own = software.find((each) => each === name);
  const given: NativeOpenOptions =
    own === undefined
      ? { fabric: 'verbs', onDemand, verbs: { ...verbs, device: name } }
      : { fabric: own, seed, lossPpm, duplicatePpm, host };
  return openDeviceOf(name, given);
}

/** Returns whether the memory was allocated by a device of this thread. */
export function isAllocated(device: Device, memory: ArrayBuffer): boolean {
  return (device as OpenDevice).native.owns(new Uint8Array(memory));
}

/** Opens the device that these options name in native code. `name` is for the device's error texts. */
export function openDeviceOf(name: string, given: NativeOpenOptions): Device {
  try {
    return new OpenDevice(name, loadNative().openVerbsDevice(given));
  } catch (cause) {
    throw new VerbsError('refused', `openDevice('${name}'): ${(cause as Error).message}`);
  }
}
