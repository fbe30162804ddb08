/**
 * Relays the sideband connection to a server. The relay changes one side's frames, as if that side were of
 * another release. Connections of the tcp fabric pass through it unchanged.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Frame } from '../../runtime/control/frames.ts';
import { decodeFrame, encodeFrame } from '../../runtime/control/link.ts';
import { connectMessageMagic } from '../../runtime/control/socket/handoff.ts';
import { socketPath } from '../runtime/world.ts';

const prefixBytes = 4;

/** Returns the frame to send in place of a frame. */
export type Change = (frame: Frame) => object;

/** Passes on the data that arrives, frame by frame. */
function pass(from: Socket, to: Socket, change: Change): void {
  let pending = Buffer.alloc(0);
  let isRaw: boolean | undefined;
  from.on('data', (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    if (pending.length >= prefixBytes) isRaw ??= pending.readUInt32LE(0) === connectMessageMagic;
    if (isRaw === true) {
      to.write(pending);
      pending = Buffer.alloc(0);
    }
    while (pending.length >= prefixBytes) {
      const end = prefixBytes + pending.readUInt32LE(0);
      if (pending.length < end) return;
      const frame = decodeFrame(pending.subarray(prefixBytes, end));
      if (typeof frame === 'string') throw new Error(frame);
      pending = pending.subarray(end);
      to.write(encodeFrame(change(frame) as Frame));
    }
  });
  from.on('error', () => to.destroy());
  from.on('close', () => to.destroy());
}

export interface Way {
  readonly address: string;
  end(): Promise<unknown>;
}

/**
 * Starts a relay to the server at `address`, which is HOST:PORT or unix:PATH, and returns the relay's address
 * of the same kind.
 */
export async function changedWay(address: string, change: Change): Promise<Way> {
  const [, path] = /^unix:(.+)$/.exec(address) ?? [];
  const [, host = '', port = ''] = /^(.+):(\d+)$/.exec(address) ?? [];
  const sockets = new Set<Socket>();
  const relay = createServer((client) => {
    const server = path === undefined ? connect(Number(port), host) : connect(path);
    for (const socket of [client, server]) sockets.add(socket);
    pass(client, server, change);
    pass(server, client, change);
  });
  const own = socketPath();
  if (path === undefined) relay.listen(0, '127.0.0.1');
  else relay.listen(own);
  await once(relay, 'listening');
  return {
    address: path === undefined ? `127.0.0.1:${(relay.address() as AddressInfo).port}` : `unix:${own}`,
    end: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((done) => relay.close(done));
    },
  };
}
