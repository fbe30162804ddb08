/**
 * A way to a server on which neither side hears of some of the other's features, as if it were an older one:
 * a proxy of the sideband that takes their bits out of hello and welcome.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { decodeFrame, encodeFrame } from '../../runtime/control/link.ts';

const prefixBytes = 4;

/** Hands on what comes, frame by frame, without the bits `unknown`. */
function pass(from: Socket, to: Socket, unknown: number): void {
  let pending = Buffer.alloc(0);
  from.on('data', (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= prefixBytes) {
      const end = prefixBytes + pending.readUInt32LE(0);
      if (pending.length < end) return;
      const frame = decodeFrame(pending.subarray(prefixBytes, end));
      if (typeof frame === 'string') throw new Error(frame);
      pending = pending.subarray(end);
      to.write(encodeFrame('features' in frame ? { ...frame, features: frame.features & ~unknown } : frame));
    }
  });
  from.on('error', () => to.destroy());
  from.on('close', () => to.destroy());
}

export interface Way {
  readonly address: string;
  end(): Promise<unknown>;
}

/** To the server at `address`, HOST:PORT, without the features `unknown`. */
export async function wayWithout(unknown: number, address: string): Promise<Way> {
  const [, host = '', port = ''] = /^(.+):(\d+)$/.exec(address) ?? [];
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    const server = connect(Number(port), host);
    for (const socket of [client, server]) sockets.add(socket);
    pass(client, server, unknown);
    pass(server, client, unknown);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    address: `127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    end: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((done) => proxy.close(done));
    },
  };
}
