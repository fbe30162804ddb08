/**
 * Opens the device and the queue pair of a stream, and connects it by addresses that both sides exchange over
 * a channel of any kind (examples/pingpong/meeting.ts has a socket and one inside a process).
 */
import { openDevice } from 'rdma-rpc/verbs';
import type { Meeting } from '../pingpong/meeting.ts';
import { RdmaStream, type RdmaStreamOptions } from './stream.ts';

const receivesDefault = 1024;

/** Resolves to a stream of bytes to the peer. The client is the side that connects. */
export async function openStream(
  device: string,
  role: 'client' | 'server',
  meeting: Meeting,
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
    meeting.close();
    for (const each of [cq, pd, opened]) each.close();
  });
  try {
    const peer = await meeting.swap(Buffer.from(qp.address).toString('hex'));
    const address = Uint8Array.from(Buffer.from(peer, 'hex'));
    await (isClient ? qp.connect(address) : qp.accept(address));
  } catch (error) {
    stream.destroy();
    throw error;
  }
  stream.start(isClient);
  return stream;
}
