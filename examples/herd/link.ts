/**
 * How requests and answers travel. HERD writes requests over UC and sends answers over UD; `rc` does both
 * over one reliable connection, for devices that have nothing else.
 */
import type { CompletionQueue, Device, ProtectionDomain, QueuePair, SendBatch } from 'rdma-rpc/verbs';

export type Ways = 'uc+ud' | 'rc';

/** What the two sides tell each other before they connect. */
export interface Introduction {
  /** `QueuePair.address` of the connection, in hexadecimal. */
  readonly address: string;
  /** Where answers go over UD. */
  readonly gid: string;
  readonly qpn: number;
  /** The server's slots for this client. */
  readonly addr: number;
  readonly rkey: number;
}

export const qkey = 0x4e_52_44;
/** The header in front of each datagram that is received (GRH). */
export const headerBytes = (ways: Ways): number => (ways === 'rc' ? 0 : 40);

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytesOf = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'));

/** Throws with the reason when the device lacks these ways. */
export function checkWays(device: Device, ways: Ways): void {
  if (ways === 'rc') return;
  const why = device.whyNot('uc') ?? device.whyNot('ud');
  if (why !== undefined) throw new Error(`${why} (over rc it works)`);
}

/** One side of the connection between a client and the server. */
export class HerdLink {
  /** Carries requests, and over `rc` the answers, too. */
  readonly connected: QueuePair;
  /** Carries answers over UD: the server has one for all clients. */
  readonly datagrams: QueuePair | undefined;
  readonly #pd: ProtectionDomain;
  readonly #device: Device;
  readonly #role: 'connect' | 'accept';
  #to: { ah: ReturnType<ProtectionDomain['createAh']>; qpn: number } | undefined;

  constructor(
    device: Device,
    pd: ProtectionDomain,
    cq: CompletionQueue,
    role: 'connect' | 'accept',
    ways: Ways,
    datagrams?: QueuePair,
  ) {
    this.#device = device;
    this.#pd = pd;
    this.#role = role;
    this.connected = pd.createQp({ type: ways === 'rc' ? 'rc' : 'uc', cq, role });
    this.datagrams = ways === 'rc' ? undefined : (datagrams ?? pd.createQp({ type: 'ud', cq, qkey }));
  }

  introduction(addr = 0, rkey = 0): Introduction {
    const gid = hex(this.#device.gid);
    return { address: hex(this.connected.address), gid, qpn: this.datagrams?.qpNum ?? 0, addr, rkey };
  }

  async connect(peer: Introduction): Promise<void> {
    if (this.#role === 'connect') await this.connected.connect(bytesOf(peer.address));
    else await this.connected.accept(bytesOf(peer.address));
    if (this.datagrams === undefined) return;
    if (this.datagrams.state === 'INIT') await this.datagrams.connect(new Uint8Array());
    this.#to = { ah: this.#pd.createAh({ gid: bytesOf(peer.gid) }), qpn: peer.qpn };
  }

  /** Takes answers, and over `rc` also on the connection. */
  get answers(): QueuePair {
    return this.datagrams ?? this.connected;
  }
  /** Posts an answer: the batch has one SEND. */
  answer(batch: SendBatch): void {
    if (this.#to !== undefined) batch.to(this.#to.ah, this.#to.qpn, qkey);
    this.answers.post(batch);
  }

  close(): void {
    this.#to?.ah.close();
    this.connected.close();
    this.datagrams?.close();
  }
}
