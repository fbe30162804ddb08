/**
 * Sends requests and responses. HERD writes requests over UC and sends responses over UD. `rc` does both over
 * one reliable connection, for devices that have neither UC nor UD.
 */
import type { CompletionQueue, Device, ProtectionDomain, QueuePair, SendBatch } from 'rdma-rpc/verbs';

export type Ways = 'uc+ud' | 'rc';

/** The information that the two sides exchange before they connect. */
export interface Introduction {
  /** `QueuePair.address` of the connection, in hexadecimal. */
  readonly address: string;
  /** The destination of responses over UD. */
  readonly gid: string;
  readonly qpn: number;
  /** The server's slots for this client. */
  readonly addr: number;
  readonly rkey: number;
}

export const qkey = 0x4e_52_44;
/** Returns the size of the header in front of each received datagram (GRH). */
export const headerBytes = (ways: Ways): number => (ways === 'rc' ? 0 : 40);

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytesOf = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'));

/** Throws the reason when the device lacks these types of queue pairs. */
export function checkWays(device: Device, ways: Ways): void {
  if (ways === 'rc') return;
  const why = device.whyNot('uc') ?? device.whyNot('ud');
  if (why !== undefined) throw new Error(`${why} (over rc it works)`);
}

/** One side of the connection between a client and the server. */
export class HerdLink {
  /** The queue pair for requests and, over `rc`, also for responses. */
  readonly connected: QueuePair;
  /** The queue pair for responses over UD. The server has one such queue pair for all clients. */
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

  /** The queue pair that receives responses, which over `rc` is the connection. */
  get answers(): QueuePair {
    return this.datagrams ?? this.connected;
  }
  /** Posts a response. The batch has one SEND. */
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
