/** Protection domains: what registers memory and makes queue pairs. */
import { checkedOptions } from '../core/options.ts';
import type { NativeVerbsDevice } from '../native/verbs-device.ts';
import { type CompletionQueue, OpenCompletionQueue } from './completion-queue.ts';
import { Access } from './constants.ts';
import { checkedInteger, granted } from './errors.ts';
import { type MemoryRegion, type Registrable, register } from './memory-region.ts';
import { OpenQueuePair, type QueuePair } from './queue-pair.ts';
import { Resource } from './resource.ts';

/** What a queue pair is made of (`struct ibv_qp_init_attr`). */
export interface QueuePairOptions {
  /** `rc`: reliable and connected (IBV_QPT_RC). */
  type: 'rc';
  /** Where its completions go. */
  cq: CompletionQueue;
  /**
   * `connect` (default) for the side that asks for the connection, `accept` for the other one. On iWARP the
   * connecting side must send first.
   */
  role?: 'connect' | 'accept';
  /** Requests that may be outstanding. Default 128; at most `capabilities.maxQpWr`. */
  sendWrMax?: number;
  /** Receives that may be posted. Default 128; at most `capabilities.maxQpWr`. */
  recvWrMax?: number;
  /** Scatter/gather entries of a request. Default 1; at most `capabilities.maxSge`. */
  sgeMax?: number;
}

/** A protection domain (`struct ibv_pd`). See ibv_alloc_pd(3). */
export interface ProtectionDomain extends Disposable {
  readonly name: string;
  /**
   * Allocates memory that suits the device, for `regMr`: zeroed, on its own pages, and at the fastest place on
   * shared memory. Sends, receives and peers can use it once it is registered.
   */
  allocBuffer(byteLength: number): ArrayBuffer;
  /**
   * Registers memory with rights of `Access`; the result has the bytes and the keys. See ibv_reg_mr(3).
   *
   * Memory of `allocBuffer` and SharedArrayBuffers are registered where they are. Any other ArrayBuffer is
   * moved: its bytes are copied into memory of this library, `bytes` of the result shows them at the same
   * offset, and the buffer that was given is detached, as by a transfer list. Memory that others rely on (the
   * pool of Node's small Buffers, a WebAssembly.Memory) throws a TypeError.
   */
  regMr(buffer: Registrable, access?: number): MemoryRegion;
  createQp(options: QueuePairOptions): QueuePair;
  readonly closed: boolean;
  /** Closes it (ibv_dealloc_pd(3)). What it has made goes on until it is closed. */
  close(): void;
}

const defaultDepth = 128;
const depthMax = 1 << 20;
const sgesMax = 64;
const accessBits = Object.values(Access).reduce((all, bit) => all | bit, 0);

const queuePairRules = {
  type: { kind: 'choice', values: ['rc'], default: '' },
  role: { kind: 'choice', values: ['connect', 'accept'], default: 'connect' },
  sendWrMax: { kind: 'integer', range: { default: defaultDepth, min: 1, max: depthMax } },
  recvWrMax: { kind: 'integer', range: { default: defaultDepth, min: 1, max: depthMax } },
  sgeMax: { kind: 'integer', range: { default: 1, min: 1, max: sgesMax } },
  cq: { kind: 'source' },
} as const;

interface CheckedQueuePairOptions {
  readonly type: '' | 'rc';
  readonly cq: unknown;
  readonly role: 'connect' | 'accept';
  readonly sendWrMax: number;
  readonly recvWrMax: number;
  readonly sgeMax: number;
}

/** What the objects of a device share. */
export interface DeviceParts {
  readonly native: NativeVerbsDevice;
  readonly name: string;
  /** Throws when the device was closed. */
  check(): void;
  /** Counts an object of the device, which stays open behind the scenes until all of them are closed. */
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
    const { cq, type, role, ...depths } = checkedOptions<CheckedQueuePairOptions>(
      'createQp',
      options,
      queuePairRules,
    );
    if (type === '') throw new TypeError("createQp: option type is missing; give type: 'rc'");
    if (!(cq instanceof OpenCompletionQueue))
      throw new TypeError('createQp: option cq is missing; give a completion queue of this device');
    cq.check();
    if (!cq.isOf(this.#device.native))
      throw new TypeError(`createQp: ${cq.name} belongs to another device than ${this.name}`);
    const made = this.#device.native.createQp({ ...depths, cq: cq.number, active: role === 'connect' });
    return this.#device.track(
      new OpenQueuePair(this.#device.native, this.#device.name, granted('createQp', made), cq, role),
    );
  }

  protected override release(): void {}
}
