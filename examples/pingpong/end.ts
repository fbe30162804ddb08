/**
 * One end of a ping-pong: its device, memory and queue pairs, and the exchange of messages. Each message is
 * answered by a message of the same size, and each byte that arrives is checked. One class serves all kinds,
 * because they differ only in how a queue pair is made and where a message goes.
 */
import {
  Access,
  type AddressHandle,
  type CompletionQueue,
  Completions,
  type Device,
  type MemoryRegion,
  openDevice,
  type ProtectionDomain,
  type QueuePair,
  RecvBatch,
  SendBatch,
  SendFlags,
  type SharedReceiveQueue,
  statusName,
  WcOpcode,
  WcStatus,
} from 'rdma-rpc/verbs';
import type { Card } from './meeting.ts';
import type { Options } from './options.ts';

/** Size of the header in front of each received datagram (GRH). */
const grhBytes = 40;
/** The receiver's device drops datagrams with a different number. */
const qkey = 0x1111_1111;
/** A multicast datagram names the group by its GID, and has this number instead of that of a queue pair. */
const multicastQpn = 0xff_ffff;
/** The group 239.70.70.70, in the form ff0e::ffff:239.70.70.70 that networks of IPv4 and of IPv6 have. */
const group = Uint8Array.of(0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 70, 70, 70);
/**
 * Number of receives that are posted for each queue pair: one for the next message, and one for a message
 * that arrives twice.
 */
const receivesEach = 2;

/** A queue pair, and the state of its exchange of messages. */
interface Player {
  readonly qp: QueuePair;
  readonly index: number;
  /** The request of each message, which is posted again and again. */
  readonly request: SendBatch;
  sent: number;
  received: number;
  /** Whether the last message has left, so that its memory may be filled again. */
  idle: boolean;
}

export class End implements Disposable {
  readonly #options: Options;
  readonly #first: boolean;
  readonly #device: Device;
  readonly #pd: ProtectionDomain;
  readonly #cq: CompletionQueue;
  readonly #srq: SharedReceiveQueue | undefined;
  readonly #mr: MemoryRegion;
  readonly #players: readonly Player[];
  readonly #byNumber = new Map<number, Player>();
  readonly #done = new Completions(64);
  /** The receive of each slot, which is posted again each time that its message has been taken. */
  readonly #receives: readonly RecvBatch[];
  readonly #header: number;
  /** The source of the bytes of all messages. Message n has the bytes from n % 256 on. */
  readonly #pattern: Uint8Array;
  /** The destination of datagrams: the peer's port or the group. */
  #to: { readonly ah: AddressHandle; readonly qpn: number } | undefined;
  bytesChecked = 0;

  /**
   * With `first`, this end connects and sends the first message. Throws an error about what the device lacks.
   */
  constructor(options: Options, first: boolean) {
    const { kind, size, queuePairs } = options;
    this.#options = options;
    this.#first = first;
    this.#device = openDevice(options.device, {
      ...(options.device === 'sim' ? { lossPpm: options.lossPpm, seed: options.seed } : {}),
      ...(options.gidIndex === undefined ? {} : { gidIndex: options.gidIndex }),
    });
    const datagrams = kind === 'ud' || kind === 'multicast';
    const feature = {
      rc: undefined,
      uc: 'uc',
      ud: 'ud',
      multicast: 'multicast',
      xsrq: 'xrc',
      srq: 'sharedReceives',
    }[kind] as Parameters<Device['whyNot']>[0] | undefined;
    const whyNot = feature === undefined ? undefined : this.#device.whyNot(feature);
    if (whyNot !== undefined) {
      this.#device.close();
      throw new Error(whyNot);
    }
    this.#header = datagrams ? grhBytes : 0;
    this.#pattern = Uint8Array.from({ length: size + 256 }, (_, i) => (i * 167 + (i >> 8) * 13) & 0xff);
    this.#pd = this.#device.allocPd();
    this.#cq = this.#device.createCq();
    const receives = receivesEach * queuePairs;
    this.#mr = this.#pd.regMr(
      this.#pd.allocBuffer(queuePairs * size + receives * (size + this.#header)),
      Access.localWrite,
    );
    this.#srq = kind === 'srq' ? this.#pd.createSrq({ cq: this.#cq, wrMax: receives }) : undefined;
    const role = first ? 'connect' : 'accept';
    const type = kind === 'uc' ? 'uc' : datagrams ? 'ud' : 'rc';
    this.#players = Array.from({ length: queuePairs }, (_, index) => {
      const shared = this.#srq === undefined ? {} : { srq: this.#srq };
      const qp = this.#pd.createQp({ type, cq: this.#cq, role, qkey: datagrams ? qkey : 0, ...shared });
      const player = { qp, index, request: new SendBatch(1), sent: 0, received: 0, idle: true };
      this.#byNumber.set(qp.qpNum, player);
      return player;
    });
    // Receives are posted before the peer can send, because an RDMA device has no buffer of its own.
    this.#receives = Array.from({ length: receives }, (_, slot) =>
      new RecvBatch(1).recv(slot, this.#mr, this.#slotAt(slot), size + this.#header),
    );
    for (let slot = 0; slot < receives; ++slot) this.#postReceive(slot, this.#players[slot % queuePairs]!.qp);
  }

  get card(): Card {
    const { size, iters } = this.#options;
    return {
      size,
      iters,
      addresses: this.#players.map(({ qp }) => Buffer.from(qp.address).toString('hex')),
      gid: Buffer.from(this.#device.gid).toString('hex'),
      qpNums: this.#players.map(({ qp }) => qp.qpNum),
    };
  }

  /** Connects each queue pair to the peer's queue pair with the same index. */
  async connect(peer: Card): Promise<void> {
    const { kind, size, iters } = this.#options;
    if (peer.size !== size || peer.iters !== iters || peer.qpNums.length !== this.#players.length)
      throw new Error(
        `the other side plays ${peer.iters} rounds of ${peer.size} bytes: give both the same flags`,
      );
    if (kind === 'ud' || kind === 'multicast') {
      const { qp } = this.#players[0]!;
      await (this.#first ? qp.connect(new Uint8Array()) : qp.accept(new Uint8Array()));
      if (kind === 'multicast') qp.joinMulticast(group);
      const gid = kind === 'multicast' ? group : Uint8Array.from(Buffer.from(peer.gid, 'hex'));
      const qpn = kind === 'multicast' ? multicastQpn : peer.qpNums[0]!;
      this.#to = { ah: this.#pd.createAh({ gid }), qpn };
      return;
    }
    await Promise.all(
      this.#players.map(({ qp, index }) => {
        const address = Uint8Array.from(Buffer.from(peer.addresses[index]!, 'hex'));
        return this.#first ? qp.connect(address) : qp.accept(address);
      }),
    );
  }

  /** Sends the first ping of each queue pair, on the side that begins. */
  start(): void {
    const { size } = this.#options;
    for (const { request, index } of this.#players) {
      request.send(index, SendFlags.signaled).sge(this.#mr, index * size, size);
      if (this.#to !== undefined) request.to(this.#to.ah, this.#to.qpn, qkey);
    }
    if (this.#first) for (const player of this.#players) this.#ping(player);
  }

  get over(): boolean {
    return this.#players.every(
      ({ received, sent, idle }) => idle && Math.min(received, sent) === this.#options.iters,
    );
  }

  /** Answers the messages that have arrived. Returns whether any message had arrived. */
  advance(): boolean {
    const count = this.#cq.poll(this.#done);
    for (let i = 0; i < count; ++i) this.#take(i);
    return count > 0;
  }

  /** Lets the device work for the peer, which may have ended already. */
  drive(): void {
    this.#cq.poll(this.#done);
  }

  /** Sleeps until completions may be there. */
  ready(): Promise<void> {
    return this.#cq.ready();
  }

  #take(i: number): void {
    const done = this.#done;
    const player = this.#byNumber.get(done.qpNum(i))!;
    if (done.status(i) !== WcStatus.success)
      throw new Error(
        `queue pair ${player.qp.qpNum}: ${statusName(done.status(i))} ${player.qp.error}`.trim(),
      );
    if (done.opcode(i) === WcOpcode.recv) {
      const slot = done.wrId(i);
      // A member of a group also receives the messages that it sends itself.
      if (done.srcQp(i) === 0 || done.srcQp(i) !== player.qp.qpNum)
        this.#check(player, slot, done.byteLength(i));
      this.#postReceive(slot, player.qp);
    } else {
      player.idle = true;
    }
    // The side that began sends a ping when it has all answers. The other side answers the messages that have
    // arrived.
    const { received, sent, idle } = player;
    const turn = this.#first ? received === sent && sent < this.#options.iters : received > sent;
    if (idle && turn) this.#ping(player);
  }

  #check(player: Player, slot: number, byteLength: number): void {
    const { size } = this.#options;
    const at = this.#slotAt(slot) + this.#header;
    if (byteLength !== size + this.#header)
      throw new Error(`message ${player.received} has ${byteLength - this.#header} bytes, not ${size}`);
    ++player.received;
    if (this.#options.check) this.#checkBytes(player, at);
  }

  #checkBytes(player: Player, at: number): void {
    const { size } = this.#options;
    const message = player.received - 1;
    const wanted = this.#pattern.subarray(message % 256, (message % 256) + size);
    if (Buffer.compare(wanted, this.#mr.bytes.subarray(at, at + size)) !== 0)
      throw new Error(`message ${message} of queue pair ${player.qp.qpNum} has wrong bytes`);
    this.bytesChecked += size;
  }

  #ping(player: Player): void {
    if (this.#options.check) this.#fill(player);
    player.qp.post(player.request);
    player.idle = false;
    ++player.sent;
  }

  #fill({ index, sent }: Player): void {
    const { size } = this.#options;
    this.#mr.bytes.set(this.#pattern.subarray(sent % 256, (sent % 256) + size), index * size);
  }

  #slotAt(slot: number): number {
    const { size, queuePairs } = this.#options;
    return queuePairs * size + slot * (size + this.#header);
  }
  #postReceive(slot: number, qp: QueuePair): void {
    (this.#srq ?? qp).postRecv(this.#receives[slot]!);
  }

  [Symbol.dispose](): void {
    for (const { qp } of this.#players) qp.close();
    this.#to?.ah.close();
    for (const each of [this.#srq, this.#mr, this.#cq, this.#pd, this.#device]) each?.close();
  }
}
