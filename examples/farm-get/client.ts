/**
 * The client's side. GET is one READ of the server's memory, which the server's CPU does not notice; PUT is
 * an ordinary call.
 */
import { type Channel, createClient } from 'rdma-rpc';
import {
  Access,
  type CompletionQueue,
  type Completions,
  type MemoryRegion,
  type OpenOptions,
  openDevice,
  type QueuePair,
  SendBatch,
  SendFlags,
  statusName,
  WcStatus,
} from 'rdma-rpc/verbs';
import { type StoreClient, StoreDefinition } from './gen/farm.rdma.ts';
import { encodedKey, objectBytes, readObject } from './object.ts';
import { Pump } from './pump.ts';
import { neighbours, sameKey, slotOf } from './table.ts';

/**
 * Maximum number of READs for one GET. A READ that met a write is repeated, and a writer finishes within
 * microseconds.
 */
const triesMax = 10_000;

export interface ClientOptions {
  readonly open?: OpenOptions;
  /** Number of READs in flight at once; further GETs wait for their turn. Default 32. */
  readonly depth?: number;
  /**
   * The device reads each cache line at once, as a NIC does, so the checksum is not checked. Default false.
   */
  readonly linesAreWhole?: boolean;
}

/** The location of the server's objects. */
interface Remote {
  readonly addr: number;
  readonly rkey: number;
  readonly slots: number;
  /** Number of bytes of one object. */
  readonly bytes: number;
}

interface Waiting {
  resolve(): void;
  reject(error: Error): void;
}

export class FarmClient implements Disposable {
  /** Number of READs that were repeated because they had met a write. */
  torn = 0;
  readonly #store: StoreClient;
  readonly #qp: QueuePair;
  readonly #mr: MemoryRegion;
  readonly #remote: Remote;
  readonly #linesAreWhole: boolean;
  readonly #pump: Pump;
  readonly #closing: readonly { close(): void }[];
  readonly #batch = new SendBatch(1);
  /**
   * Indices of the memory for copies that no READ uses, GETs that wait for such memory, and READs in flight
   * by the index of their memory.
   */
  readonly #free: number[];
  readonly #turns: (() => void)[] = [];
  readonly #reads: (Waiting | undefined)[] = [];

  /**
   * Opens the device, and connects by a call of the service. Both sides need the same device, or devices on
   * the same network.
   */
  static async open(channel: Channel, device: string, options: ClientOptions = {}): Promise<FarmClient> {
    const { depth = 32, linesAreWhole = false, open = {} } = options;
    const store: StoreClient = createClient(StoreDefinition, channel);
    const opened = openDevice(device, open);
    const pd = opened.allocPd();
    const cq = opened.createCq();
    const qp = pd.createQp({ type: 'rc', cq, role: 'connect', sendWrMax: depth });
    const { address, addr, rkey, slots, valueMax } = await store.open({ address: qp.address });
    await qp.connect(Uint8Array.from(address));
    const remote = { addr, rkey, slots, bytes: objectBytes(valueMax) };
    // On iWARP the memory that a READ fills must be writable by the peer.
    const mr = pd.regMr(pd.allocBuffer(depth * remote.bytes), Access.localWrite | Access.remoteWrite);
    return new FarmClient(store, qp, mr, remote, depth, linesAreWhole, [qp, mr, cq, pd, opened], cq);
  }

  private constructor(
    store: StoreClient,
    qp: QueuePair,
    mr: MemoryRegion,
    remote: Remote,
    depth: number,
    linesAreWhole: boolean,
    closing: readonly { close(): void }[],
    cq: CompletionQueue,
  ) {
    this.#store = store;
    this.#qp = qp;
    this.#mr = mr;
    this.#remote = remote;
    this.#linesAreWhole = linesAreWhole;
    this.#closing = closing;
    this.#free = Array.from({ length: depth }, (_, i) => i);
    this.#pump = new Pump(cq, (done, i) => this.#take(done, i));
  }

  async put(key: string, value: Uint8Array): Promise<void> {
    await this.#store.put({ key, value });
  }

  /**
   * Resolves to a copy of the value, or to undefined when the key has no value. It never resolves to parts of
   * two values.
   */
  async get(key: string): Promise<Uint8Array | undefined> {
    const wanted = encodedKey(key);
    const place = await this.#place();
    try {
      const { slots } = this.#remote;
      const first = slotOf(wanted, slots);
      for (let i = 0, tries = 0; i < neighbours; ) {
        const seen = readObject(await this.#read((first + i) % slots, place), this.#linesAreWhole);
        if (seen === 'torn') {
          ++this.torn;
          // The event loop runs in between, because the writer may be on this thread.
          await new Promise((resolve) => setImmediate(resolve));
          if (++tries === triesMax) throw new Error(`'${key}' was written at each of ${triesMax} READs`);
        } else if (seen === 'empty') {
          return undefined;
        } else if (sameKey(seen.key, wanted)) {
          return seen.value;
        } else {
          ++i;
        }
      }
      return undefined;
    } finally {
      this.#giveBack(place);
    }
  }

  /** READs the object in slot `slot` into the memory with the index `place`, and resolves to the copy. */
  async #read(slot: number, place: number): Promise<Uint8Array> {
    const { addr, rkey, bytes } = this.#remote;
    const at = place * bytes;
    const read = new Promise<void>((resolve, reject) => {
      this.#reads[place] = { resolve, reject };
    });
    const request = this.#batch.clear().read(place, addr + slot * bytes, rkey, SendFlags.signaled);
    this.#qp.post(request.sge(this.#mr, at, bytes));
    this.#pump.begin();
    await read;
    return this.#mr.bytes.subarray(at, at + bytes);
  }

  #take(done: Completions, i: number): void {
    this.#pump.end();
    const read = this.#reads[done.wrId(i)];
    if (done.status(i) === WcStatus.success) read?.resolve();
    else read?.reject(new Error(`the READ has failed: ${statusName(done.status(i))}`));
  }

  async #place(): Promise<number> {
    while (this.#free.length === 0)
      await new Promise<void>((resolve) => {
        this.#turns.push(resolve);
      });
    return this.#free.pop()!;
  }
  #giveBack(place: number): void {
    this.#free.push(place);
    this.#turns.shift()?.();
  }

  [Symbol.dispose](): void {
    for (const each of this.#closing) each.close();
  }
}
