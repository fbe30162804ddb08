/**
 * The server finds requests by polling its request memory instead of a completion queue, and answers each by
 * one SEND. Request slots are divided as in HERD: each client has a few slots, for the requests that it may
 * have in flight.
 */
import {
  Access,
  Completions,
  type Device,
  type MemoryRegion,
  type OpenOptions,
  openDevice,
  type ProtectionDomain,
  type QueuePair,
  SendBatch,
  SendFlags,
  statusName,
  WcStatus,
} from 'rdma-rpc/verbs';
import { checkWays, HerdLink, type Introduction, qkey, type Ways } from './link.ts';
import {
  answerHeadBytes,
  decodeRequest,
  Operation,
  type Request,
  Status,
  slotBytes,
  valueMax,
} from './slot.ts';

export interface ServerOptions {
  readonly device: string;
  readonly open?: OpenOptions;
  readonly ways: Ways;
  readonly clientsMax?: number;
  /** Number of requests that a client may have in flight. */
  readonly slotsEach?: number;
}

const answerBytes = answerHeadBytes + valueMax;
/**
 * Responses are sent from a ring. One of `signalEvery` responses asks for a completion, which frees their
 * memory.
 */
const ringAnswers = 64;
const signalEvery = 16;
/** Number of scans before the event loop may run. */
const scansPerTurn = 32;

/** A slot of the request memory, and the response to its last request. */
interface Slot {
  readonly link: HerdLink;
  readonly index: number;
  readonly bytes: Uint8Array;
  /** The number that a request writes last. */
  readonly word: Uint32Array;
  last: number;
  answer: { readonly status: number; readonly value: Uint8Array };
}

export class HerdServer implements Disposable {
  readonly values = new Map<string, Uint8Array>();
  served = 0;
  readonly #options: Required<ServerOptions>;
  readonly #device: Device;
  readonly #pd: ProtectionDomain;
  readonly #cq: ReturnType<Device['createCq']>;
  readonly #requests: MemoryRegion;
  readonly #answers: MemoryRegion;
  readonly #datagrams: QueuePair | undefined;
  readonly #links: HerdLink[] = [];
  readonly #slots: Slot[] = [];
  readonly #send = new SendBatch(1);
  readonly #done = new Completions(ringAnswers);
  #sent = 0;
  #free = ringAnswers;

  constructor(options: ServerOptions) {
    const all = { open: {}, clientsMax: 8, slotsEach: 16, ...options };
    this.#options = all;
    this.#device = openDevice(all.device, all.open);
    checkWays(this.#device, all.ways);
    this.#pd = this.#device.allocPd();
    this.#cq = this.#device.createCq();
    this.#requests = this.#pd.regMr(
      this.#pd.allocBuffer(all.clientsMax * all.slotsEach * slotBytes),
      Access.localWrite | Access.remoteWrite,
    );
    this.#answers = this.#pd.regMr(this.#pd.allocBuffer(ringAnswers * answerBytes));
    // One queue pair sends responses to all clients, which is the reason why HERD sends over UD.
    if (all.ways !== 'rc') this.#datagrams = this.#pd.createQp({ type: 'ud', cq: this.#cq, qkey });
  }

  /** Connects a client. The two sides may exchange their introductions in any order. */
  async add(swap: (mine: Introduction) => Promise<Introduction>): Promise<void> {
    const { ways, clientsMax, slotsEach } = this.#options;
    const client = this.#links.length;
    if (client === clientsMax) throw new Error(`the server has slots for ${clientsMax} clients`);
    const link = new HerdLink(this.#device, this.#pd, this.#cq, 'accept', ways, this.#datagrams);
    this.#links.push(link);
    const first = client * slotsEach * slotBytes;
    const peer = await swap(link.introduction(this.#requests.addr + first, this.#requests.rkey));
    await link.connect(peer);
    for (let index = 0; index < slotsEach; ++index) {
      const bytes = this.#requests.bytes.subarray(first + index * slotBytes, first + (index + 1) * slotBytes);
      const word = new Uint32Array(bytes.buffer, bytes.byteOffset + slotBytes - 4, 1);
      this.#slots.push({
        link,
        index,
        bytes,
        word,
        last: 0,
        answer: { status: Status.ok, value: bytes.subarray(0, 0) },
      });
    }
  }

  /** Checks each slot once. Returns the number of requests that it has found. */
  poll(): number {
    this.#collect();
    let found = 0;
    for (const slot of this.#slots) {
      const number = Atomics.load(slot.word, 0);
      if (number === 0) continue;
      if (this.#free === 0) break; // The device is still sending.
      ++found;
      // The number is cleared, so that the same request is noticed when its client repeats it.
      const request = number > slot.last ? decodeRequest(slot.bytes) : undefined;
      Atomics.store(slot.word, 0, 0);
      // This packet came late, or twice. The request in it was already answered, and a newer request of the
      // slot may have been answered, too.
      if (number < slot.last) continue;
      if (number > slot.last) {
        slot.answer = this.#serve(request);
        slot.last = number;
      }
      this.#answer(slot);
    }
    return found;
  }

  /** Polls for requests until the server is closed. This occupies a whole CPU, as in HERD. */
  async run(): Promise<void> {
    for (let scans = 1; !this.#device.closed; ++scans) {
      this.poll();
      if (scans % scansPerTurn === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #serve(request: Request | undefined): Slot['answer'] {
    ++this.served;
    const nothing = new Uint8Array();
    if (request === undefined) return { status: Status.wrong, value: nothing };
    const { operation, key, value } = request;
    if (operation === Operation.put) {
      this.values.set(key, value);
      return { status: Status.ok, value: nothing };
    }
    const found = this.values.get(key);
    return found === undefined
      ? { status: Status.missing, value: nothing }
      : { status: Status.ok, value: found };
  }

  #answer({ link, index, last, answer }: Slot): void {
    const at = (this.#sent % ringAnswers) * answerBytes;
    const bytes = this.#answers.bytes;
    const view = new DataView(bytes.buffer, bytes.byteOffset + at, answerHeadBytes);
    view.setUint32(0, last);
    view.setUint16(4, index);
    view.setUint8(6, answer.status);
    bytes.set(answer.value, at + answerHeadBytes);
    const length = answerHeadBytes + answer.value.byteLength;
    const inline = length <= this.#device.capabilities.maxInline ? SendFlags.inline : 0;
    ++this.#sent;
    // Over rc each connection has a queue of its own, so each response asks for a completion.
    const asks = this.#options.ways === 'rc' || this.#sent % signalEvery === 0;
    link.answer(
      this.#send
        .clear()
        .send(asks ? 1 : 0, inline | (asks ? SendFlags.signaled : 0))
        .sge(this.#answers, at, length),
    );
    --this.#free;
  }

  #collect(): void {
    const count = this.#cq.poll(this.#done);
    for (let i = 0; i < count; ++i) {
      const { ways } = this.#options;
      // Over rc a response fails when its client has gone. The slots of such a client stay silent from then
      // on.
      if (ways !== 'rc' && this.#done.status(i) !== WcStatus.success)
        throw new Error(`an answer has failed: ${statusName(this.#done.status(i))}`);
      this.#free += ways === 'rc' ? 1 : signalEvery;
    }
  }

  [Symbol.dispose](): void {
    for (const link of this.#links) link.close();
    this.#datagrams?.close();
    for (const each of [this.#requests, this.#answers, this.#cq, this.#pd, this.#device]) each.close();
  }
}
