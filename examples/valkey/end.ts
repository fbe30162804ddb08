/**
 * Opens the device and the queue pair of a stream, and connects the queue pair. It connects to a
 * valkey-server by rdma_cm, or to a peer of this folder by addresses that both sides exchange over a channel
 * of any kind (examples/pingpong/meeting.ts has a channel over a socket and one inside a process).
 */
import { listenerAddress, openDevice } from 'rdma-rpc/verbs';
import type { Meeting } from '../pingpong/meeting.ts';
import { RdmaStream, type RdmaStreamOptions } from './stream.ts';

const receivesDefault = 1024;

/** The address at which a valkey-server listens by rdma_cm, which is an IP address of its RDMA network. */
export interface Listener {
  readonly host: string;
  readonly port: number;
}

/** Resolves to a stream of bytes to the peer. The client is the side that connects. */
export async function openStream(
  device: string,
  role: 'client' | 'server',
  peer: Meeting | Listener,
  options: RdmaStreamOptions = {},
): Promise<RdmaStream> {
  const opened = openDevice(device);
  const why = opened.whyNot('writeWithImm');
  if (why !== undefined) {
    opened.close();
    throw new Error(why);
  }
  const pd = opened.allocPd();
  const cq = opened.createCq();
  const { receives = receivesDefault } = options;
  const isClient = role === 'client';
  const qp = pd.createQp({ type: 'rc', cq, role: isClient ? 'connect' : 'accept', recvWrMax: receives });
  const stream = new RdmaStream({ pd, cq, qp }, { ...options, receives });
  stream.once('close', () => {
    if ('swap' in peer) peer.close();
    for (const each of [cq, pd, opened]) each.close();
  });
  try {
    const address =
      'swap' in peer
        ? Uint8Array.from(Buffer.from(await peer.swap(Buffer.from(qp.address).toString('hex')), 'hex'))
        : listenerAddress(peer.host, peer.port);
    await (isClient ? qp.connect(address) : qp.accept(address));
  } catch (error) {
    stream.destroy();
    throw error;
  }
  stream.start(isClient);
  return stream;
}
