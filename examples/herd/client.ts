/**
 * The client writes a request into its slot of the server's memory, and waits for the response as a datagram.
 * Both may be lost, so it writes the same request again when no response arrives.
 */
import {
  Access,
  type Completions,
  type Device,
  type MemoryRegion,
  type OpenOptions,
  openDevice,
  RecvBatch,
  SendBatch,
  SendFlags,
  statusName,
  WcOpcode,
  WcStatus,
} from 'rdma-rpc/verbs';
import { Pump } from '../farm-get/pump.ts';
import { checkWays, HerdLink, headerBytes, type Introduction, type Ways } from './link.ts';
import {
  answerHeadBytes,
  encodeRequest,
  keyMax,
  Operation,
  type Request,
  requestBytes,
  Status,
  slotBytes,
  valueMax,
} from './slot.ts';

export interface HerdClientOptions {
  readonly device: string;
  readonly open?: OpenOptions;
  readonly ways: Ways;
  /** The server must have the same number. Default 16. */
  readonly slotsEach?: number;
  /** Time in milliseconds without a response after which a request is written again. Default 20. */
  readonly retryMs?: number;
  /** Maximum number of times that a request is written. Default 100. */
  readonly triesMax?: number;
}

interface Waiting {
  readonly number: number;
  tries: number;
  since: number;
  resolve(value: Uint8Array | undefined): void;
  reject(error: Error): void;
}

const signalEvery = 8;

export class HerdClient implements Disposable {
  /** Number of requests that were written more than once. */
  repeated = 0;
  readonly #options: Required<HerdClientOptions>;
  readonly #device: Device;
  readonly #link: HerdLink;
  readonly #mr: MemoryRegion;
  readonly #pump: Pump;
  readonly #closing: readonly { close(): void }[];
  readonly #send = new SendBatch(1);
  readonly #recv = new RecvBatch(1);
  /** Slots without a request, and requests by their slot. */
  readonly #free: number[];
  readonly #turns: (() => void)[] = [];
  readonly #waiting: (Waiting | undefined)[] = [];
  /** The number and the length of the last request in each slot. */
  readonly #numbers: number[];
  readonly #lengths: number[] = [];
  readonly #answerBytes: number;
  #remote = { addr: 0, rkey: 0 };
  #posted = 0;

  constructor(options: HerdClientOptions) {
    const all = { open: {}, slotsEach: 16, retryMs: 20, triesMax: 100, ...options };
    this.#options = all;
    this.#device = openDevice(all.device, all.open);
    checkWays(this.#device, all.ways);
    const pd = this.#device.allocPd();
    const cq = this.#device.createCq();
    this.#link = new HerdLink(this.#device, pd, cq, 'connect', all.ways);
    this.#answerBytes = headerBytes(all.ways) + answerHeadBytes + valueMax;
    // Requests are encoded in the first part, and responses are received in the second.
    this.#mr = pd.regMr(pd.allocBuffer(all.slotsEach * (slotBytes + this.#answerBytes)), Access.localWrite);
    this.#closing = [this.#link, this.#mr, cq, pd, this.#device];
    this.#free = Array.from({ length: all.slotsEach }, (_, i) => i);
    this.#numbers = Array.from({ length: all.slotsEach }, () => 0);
    // A response needs a receive, so there are as many receives as requests in flight.
    for (let i = 0; i < all.slotsEach; ++i) this.#postReceive(i);
    this.#pump = new Pump(
      cq,
      (done, i) => this.#take(done, i),
      () => this.#repeat(),
    );
  }

  async connect(swap: (mine: Introduction) => Promise<Introduction>): Promise<void> {
    const server = await swap(this.#link.introduction());
    this.#remote = { addr: server.addr, rkey: server.rkey };
    await this.#link.connect(server);
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#request({ operation: Operation.get, key, value: new Uint8Array() });
  }
  async put(key: string, value: Uint8Array): Promise<void> {
    await this.#request({ operation: Operation.put, key, value });
  }

  async #request(request: Request): Promise<Uint8Array | undefined> {
    if (Buffer.byteLength(request.key) > keyMax || request.key === '')
      throw new RangeError(`a key has 1 to ${keyMax} bytes`);
    if (request.value.byteLength > valueMax) throw new RangeError(`a value has at most ${valueMax} bytes`);
    while (this.#free.length === 0)
      await new Promise<void>((resolve) => {
        this.#turns.push(resolve);
      });
    const slot = this.#free.pop()!;
    const number = ++this.#numbers[slot]!;
    try {
      return await new Promise((resolve, reject) => {
        this.#waiting[slot] = { number, tries: 1, since: Date.now(), resolve, reject };
        encodeRequest(this.#mr.bytes.subarray(slot * slotBytes, (slot + 1) * slotBytes), number, request);
        this.#lengths[slot] = requestBytes(request.value);
        this.#write(slot);
        this.#pump.begin();
      });
    } finally {
      this.#waiting[slot] = undefined;
      this.#pump.end();
      this.#free.push(slot);
      this.#turns.shift()?.();
    }
  }

  /** Writes the end of a slot to the same position of the server's slot. */
  #write(slot: number): void {
    const length = this.#lengths[slot]!;
    const at = (slot + 1) * slotBytes - length;
    const { addr, rkey } = this.#remote;
    const asks = ++this.#posted % signalEvery === 0;
    const inline = length <= this.#device.capabilities.maxInline ? SendFlags.inline : 0;
    const flags = inline | (asks ? SendFlags.signaled : 0);
    this.#link.connected.post(
      this.#send
        .clear()
        .write(0, addr + at, rkey, flags)
        .sge(this.#mr, at, length),
    );
  }

  #repeat(): void {
    // Over rc nothing is lost, and a second response would find no receive.
    if (this.#options.ways === 'rc') return;
    const now = Date.now();
    for (const [slot, waiting] of this.#waiting.entries()) {
      if (waiting === undefined || now - waiting.since < this.#options.retryMs) continue;
      if (waiting.tries === this.#options.triesMax) {
        waiting.reject(new Error(`the server has not answered ${waiting.tries} times`));
        continue;
      }
      if (this.#link.connected.sendRoom === 0) return;
      ++waiting.tries;
      ++this.repeated;
      waiting.since = now;
      this.#write(slot);
    }
  }

  #take(done: Completions, i: number): void {
    if (done.status(i) !== WcStatus.success) {
      const error = new Error(`a request has failed: ${statusName(done.status(i))}`);
      for (const waiting of this.#waiting) waiting?.reject(error);
      return;
    }
    if (done.opcode(i) !== WcOpcode.recv) return;
    const receive = done.wrId(i);
    const { bytes } = this.#mr;
    const at = this.#receiveAt(receive) + headerBytes(this.#options.ways);
    const view = new DataView(bytes.buffer, bytes.byteOffset + at, answerHeadBytes);
    const waiting = this.#waiting[view.getUint16(4)];
    // A response that arrives twice belongs to a request that is already finished.
    if (waiting !== undefined && waiting.number === view.getUint32(0)) {
      const end = this.#receiveAt(receive) + done.byteLength(i);
      const status = view.getUint8(6);
      if (status === Status.wrong) waiting.reject(new Error('the server has refused the request'));
      else waiting.resolve(status === Status.missing ? undefined : bytes.slice(at + answerHeadBytes, end));
    }
    this.#postReceive(receive);
  }

  #receiveAt(receive: number): number {
    return this.#options.slotsEach * slotBytes + receive * this.#answerBytes;
  }
  #postReceive(receive: number): void {
    const batch = this.#recv.clear().recv(receive, this.#mr, this.#receiveAt(receive), this.#answerBytes);
    this.#link.answers.postRecv(batch);
  }

  [Symbol.dispose](): void {
    for (const each of this.#closing) each.close();
  }
}
