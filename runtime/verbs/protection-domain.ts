/**
 * Protection domains, which register memory and make queue pairs.
 */
import { checkedOptions } from '../core/options.ts';
import type { NativeVerbsDevice } from '../native/verbs-device.ts';
import { type AddressHandle, type AddressOptions, OpenAddressHandle } from './address-handle.ts';
import { type CompletionQueue, OpenCompletionQueue } from './completion-queue.ts';
import { Access, type QpType, qpTypes } from './constants.ts';
import { checkedGid, checkedInteger, granted } from './errors.ts';
import { type MemoryRegion, type Registrable, register } from './memory-region.ts';
import { type MemoryWindow, OpenMemoryWindow } from './memory-window.ts';
import { OpenQueuePair, type QueuePair } from './queue-pair.ts';
import { Resource } from './resource.ts';
import { OpenSharedReceiveQueue, type SharedReceiveQueue } from './shared-receives.ts';

/** The options of a new queue pair (`struct ibv_qp_init_attr`). */
export interface QueuePairOptions {
  /**
   * `rc`: reliable and connected; `uc`: connected, but messages may be lost; `ud`: datagrams to any queue
   * pair. `Device.whyNot` says whether the device has the last two types.
   */
  type: QpType;
  /** The queue for its completions. */
  cq: CompletionQueue;
  /**
   * `connect` (default) is for the side that starts the connection, and `accept` is for the other side. On
   * iWARP the connecting side must send first.
   */
  role?: 'connect' | 'accept';
  /** Number of requests that may be outstanding. Default 128; at most `capabilities.maxQpWr`. */
  sendWrMax?: number;
  /**
   * A shared receive queue, which replaces the queue pair's own receives. It must be made for the same
   * completion queue.
   */
  srq?: SharedReceiveQueue;
  /** A UD queue pair receives only datagrams with this number. The number is below 2^31. Default 0. */
  qkey?: number;
  /** Number of receives that may be posted. Default 128; at most `capabilities.maxQpWr`. */
  recvWrMax?: number;
  /** Number of scatter/gather entries of a request. Default 1; at most `capabilities.maxSge`. */
  sgeMax?: number;
  /**
   * The queue pair begins in RESET, and takes each step to RTS by a separate call (`toInit`, `toRtr`,
   * `toRts`), in place of `connect` or `accept`. It is for people who learn the verbs;
   * `Device.whyNot('steps')` returns whether the device supports it. Default false.
   */
  steps?: boolean;
}

/** A protection domain (`struct ibv_pd`). See ibv_alloc_pd(3). */
export interface ProtectionDomain extends Disposable {
  readonly name: string;
  /**
   * Allocates memory that suits the device, for `regMr`. The memory is filled with zeros and has pages of its
   * own. On `shm` this kind of memory is the fastest. Sends, receives and peers can use the memory once it is
   * registered.
   */
  allocBuffer(byteLength: number): ArrayBuffer;
  /**
   * Registers memory with rights of `Access`; the result has the bytes and the keys. See ibv_reg_mr(3).
   *
   * Memory of `allocBuffer` and SharedArrayBuffers are registered in place. Any other ArrayBuffer is moved:
   * its bytes are copied into memory of this library, and the given buffer is detached, as by a transfer
   * list. `bytes` of the result shows the bytes at the same offset. Throws a TypeError for memory that other
   * code relies on (the pool of Node's small Buffers, a WebAssembly.Memory).
   */
  regMr(buffer: Registrable, access?: number): MemoryRegion;
  /** Makes a queue pair in state INIT, or in RESET with the option `steps`. See ibv_create_qp(3). */
  createQp(options: QueuePairOptions): QueuePair;
  /**
   * Makes a shared receive queue. A completion queue can have one shared receive queue. `wrMax` is 1 to
   * `capabilities.maxSrqWr`. See ibv_create_srq(3).
   */
  createSrq(options: { cq: CompletionQueue; wrMax: number }): SharedReceiveQueue;
  /** Makes a memory window of type 2, which `SendBatch.bindMw` binds. See ibv_alloc_mw(3). */
  allocMw(): MemoryWindow;
  /** Makes an address handle for datagrams. See ibv_create_ah(3). */
  createAh(options: AddressOptions): AddressHandle;
  readonly closed: boolean;
  /**
   * Closes the domain (ibv_dealloc_pd(3)). The objects that it has made work until they are closed
   * themselves.
   */
  close(): void;
}

const defaultDepth = 128;
const depthMax = 1 << 20;
const sgesMax = 64;
const accessBits = Object.values(Access).reduce((all, bit) => all | bit, 0);

const queuePairRules = {
  type: { kind: 'choice', values: qpTypes, default: '' },
  role: { kind: 'choice', values: ['connect', 'accept'], default: 'connect' },
  sendWrMax: { kind: 'integer', range: { default: defaultDepth, min: 1, max: depthMax } },
  recvWrMax: { kind: 'integer', range: { default: defaultDepth, min: 1, max: depthMax } },
  sgeMax: { kind: 'integer', range: { default: 1, min: 1, max: sgesMax } },
  qkey: { kind: 'integer', range: { default: 0, min: 0, max: 2 ** 31 - 1 } },
  steps: { kind: 'boolean', default: false },
  cq: { kind: 'source' },
  srq: { kind: 'source' },
} as const;

const srqRules = {
  cq: { kind: 'source' },
  wrMax: { kind: 'integer', range: { default: defaultDepth, min: 1, max: depthMax } },
} as const;

const addressRules = {
  lid: { kind: 'integer', range: { default: 0, min: 0, max: 0xffff } },
  serviceLevel: { kind: 'integer', range: { default: 0, min: 0, max: 15 } },
  trafficClass: { kind: 'integer', range: { default: 0, min: 0, max: 255 } },
  hopLimit: { kind: 'integer', range: { default: 64, min: 0, max: 255 } },
} as const;

interface CheckedQueuePairOptions {
  readonly type: '' | QpType;
  readonly cq: unknown;
  readonly srq: unknown;
  readonly qkey: number;
  readonly role: 'connect' | 'accept';
  readonly sendWrMax: number;
  readonly recvWrMax: number;
  readonly sgeMax: number;
  readonly steps: boolean;
}

/** The parts that the objects of a device share. */
export interface DeviceParts {
  readonly native: NativeVerbsDevice;
  readonly name: string;
  /** Throws when the device was closed. */
  check(): void;
  /**
   * Counts an object of the device. The device stays open internally until all counted objects are closed.
   */
  track<Made extends Resource>(made: Made): Made;
}

export class OpenProtectionDomain extends Resource implements ProtectionDomain {
  readonly #device: DeviceParts;

  constructor(device: DeviceParts) {
    super(`protection domain of ${device.name}`);
    this.#device = device;
  }

  allocBuffer(byteLength: number): ArrayBuffer {
    this.check();
    checkedInteger('allocBuffer(byteLength)', byteLength, 1, Number.MAX_SAFE_INTEGER);
    return granted('allocBuffer', this.#device.native.allocBuffer(byteLength));
  }

  regMr(buffer: Registrable, access: number = Access.localWrite): MemoryRegion {
    this.check();
    checkedInteger('regMr(buffer, access)', access, 0, accessBits);
    return this.#device.track(register(this.#device.native, this.#device.name, buffer, access));
  }

  createQp(options: QueuePairOptions): QueuePair {
    this.check();
    const { cq, srq, type, role, ...rest } = checkedOptions<CheckedQueuePairOptions>(
      'createQp',
      options,
      queuePairRules,
    );
    if (type === '') throw new TypeError("createQp: option type is missing; give type: 'rc'");
    const queue = this.#cq('createQp', cq);
    const made = this.#device.native.createQp({
      ...rest,
      type: qpTypes.indexOf(type),
      cq: queue.number,
      active: role === 'connect',
      ...(srq === undefined ? {} : { srq: this.#srq(srq).number, recvWrMax: 0 }),
    });
    return this.#device.track(
      new OpenQueuePair(
        this.#device.native,
        this.#device.name,
        granted('createQp', made),
        queue,
        rest.steps ? 'steps' : role,
      ),
    );
  }

  createSrq(options: { cq: CompletionQueue; wrMax: number }): SharedReceiveQueue {
    this.check();
    const { cq, wrMax } = checkedOptions<{ cq: unknown; wrMax: number }>('createSrq', options, srqRules);
    const { native, name } = this.#device;
    const number = granted('createSrq', native.createSrq(this.#cq('createSrq', cq).number, wrMax));
    return this.#device.track(new OpenSharedReceiveQueue(native, name, number));
  }

  allocMw(): MemoryWindow {
    this.check();
    const { native, name } = this.#device;
    return this.#device.track(new OpenMemoryWindow(native, name, granted('allocMw', native.allocMw())));
  }

  createAh({ gid, ...options }: AddressOptions): AddressHandle {
    this.check();
    checkedGid('createAh: gid', gid);
    const { lid, serviceLevel, trafficClass, hopLimit } = checkedOptions<Required<AddressOptions>>(
      'createAh',
      options,
      addressRules,
    );
    const { native, name } = this.#device;
    const made = native.createAh(gid, lid, serviceLevel, trafficClass, hopLimit);
    return this.#device.track(new OpenAddressHandle(native, name, granted('createAh', made)));
  }

  #cq(call: string, cq: unknown): OpenCompletionQueue {
    if (!(cq instanceof OpenCompletionQueue))
      throw new TypeError(`${call}: option cq is missing; give a completion queue of this device`);
    cq.check();
    if (!cq.isOf(this.#device.native))
      throw new TypeError(`${call}: ${cq.name} belongs to another device than ${this.name}`);
    return cq;
  }
  #srq(srq: unknown): OpenSharedReceiveQueue {
    if (!(srq instanceof OpenSharedReceiveQueue))
      throw new TypeError('createQp: option srq takes a shared receive queue');
    srq.check();
    if (!srq.isOf(this.#device.native))
      throw new TypeError(`createQp: ${srq.name} belongs to another device than ${this.name}`);
    return srq;
  }

  protected override release(): void {}
}
