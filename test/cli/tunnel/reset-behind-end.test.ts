/** Tests resets that follow the end of what a socket sends, before the kernel has been told about the end. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { reset } from '../../../cli/tunnel/program-side.ts';

test.each(['in the same turn', 'in the next tick', 'behind unsent data'])(
  'a socket that has ended is reset %s',
  async (when) => {
    const server = createServer({ allowHalfOpen: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const client = connect({ port: (server.address() as AddressInfo).port, allowHalfOpen: true });
    await once(client, 'connect');
    const [peer] = await accepted;
    const errors: unknown[] = [];
    client.on('error', (error) => errors.push(error));
    const closed = once(client, 'close');
    const cut = once(peer, 'error') as Promise<[NodeJS.ErrnoException]>;
    if (when === 'behind unsent data') client.write(Buffer.alloc(20_000_000));
    client.end('last bytes');
    if (when === 'in the next tick') await new Promise<void>((resume) => process.nextTick(resume));
    reset(client);
    await closed;
    expect(errors).toEqual([]);
    peer.resume();
    // A peer that has read the end learns of the reset when it writes.
    const write = (): void => {
      if (!peer.destroyed) peer.write('more', () => setImmediate(write));
    };
    write();
    const [{ code }] = await cut;
    expect(code).toMatch(/^(ECONNRESET|EPIPE)$/);
  },
);
