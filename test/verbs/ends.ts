/**
 * Connects two ends of `rdma-rpc/verbs` in this thread, for tests.
 */
import {
  Access,
  type CompletionQueue,
  Completions,
  type Device,
  type MemoryRegion,
  openDevice,
  type ProtectionDomain,
  type QueuePair,
  type QueuePairOptions,
  RecvBatch,
} from 'rdma-rpc/verbs';

export interface End extends Disposable {
  readonly device: Device;
  readonly pd: ProtectionDomain;
  readonly cq: CompletionQueue;
  readonly qp: QueuePair;
  readonly mr: MemoryRegion;
}

export const memoryBytes = 4096;
export const allRights = Access.localWrite | Access.remoteRead | Access.remoteWrite;

export type Fabric = 'sim' | 'shm' | 'tcp';
export const fabrics: readonly Fabric[] = ['sim', 'shm', 'tcp'];

/** Opens an end on a software device, or on an RDMA device by its name. */
export function openEnd(
  fabric: string,
  role: 'connect' | 'accept',
  options: Partial<QueuePairOptions> = {},
): End {
  const device = openDevice(fabric);
  const pd = device.allocPd();
  const cq = device.createCq();
  const qp = pd.createQp({ type: 'rc', cq, role, ...options });
  const mr = pd.regMr(pd.allocBuffer(memoryBytes), allRights);
  return {
    device,
    pd,
    cq,
    qp,
    mr,
    [Symbol.dispose]() {
      for (const each of [qp, mr, cq, pd, device]) each.close();
    },
  };
}

/** Opens and connects two ends, the second on another device if `peer` names one. */
export async function openPair(
  fabric: string,
  options: Partial<QueuePairOptions> = {},
  peer = fabric,
): Promise<{ a: End; b: End } & Disposable> {
  const a = openEnd(fabric, 'connect', options);
  const b = openEnd(peer, 'accept', options);
  await Promise.all([a.qp.connect(b.qp.address), b.qp.accept(a.qp.address)]);
  return {
    a,
    b,
    [Symbol.dispose]() {
      a[Symbol.dispose]();
      b[Symbol.dispose]();
    },
  };
}

/** One completion as an object, for comparisons. */
export interface Seen {
  wrId: number;
  status: number;
  opcode: number;
  byteLength: number;
  imm: number;
}

/**
 * Polls both queues until the first has this many completions, because each queue may do work for the other.
 */
export async function take(cq: CompletionQueue, count: number, other?: CompletionQueue): Promise<Seen[]> {
  const seen: Seen[] = [];
  const into = new Completions(16);
  const unread = new Completions(16);
  while (seen.length < count) {
    cq.poll(into);
    for (let i = 0; i < into.length; ++i) {
      seen.push({
        wrId: into.wrId(i),
        status: into.status(i),
        opcode: into.opcode(i),
        byteLength: into.byteLength(i),
        imm: into.imm(i),
      });
    }
    if (into.length > 0) continue;
    other?.poll(unread);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return seen;
}

/** Posts `count` receives of `bytes` each, one after another in the end's memory. */
export function postReceives(end: End, count: number, bytes = 64): void {
  const batch = new RecvBatch(count);
  for (let i = 0; i < count; ++i) batch.recv(i, end.mr, i * bytes, bytes);
  end.qp.postRecv(batch);
}
