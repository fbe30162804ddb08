/**
 * Runs as a process that kills.ts starts and kills. With the arguments `client LIBRARY COUNT ADDRESS` it
 * opens COUNT connections; with `server LIBRARY` it accepts connections and sends its address to the parent.
 * The process sends and receives on all connections until it is killed.
 */
import { type AddressInfo, connect as netConnect, createServer as netServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect, createServer } from 'rdma-rpc/socket';

const [role, library, count, address = ''] = process.argv.slice(2);
const block = Buffer.alloc(100_000, 'kill');

function transfer(socket: Duplex): void {
  socket.on('error', () => undefined);
  socket.resume();
  const write = (): void => {
    if (!socket.destroyed) socket.write(block, () => setImmediate(write));
  };
  write();
}

if (role === 'server') {
  const told = (bound: string): void => void process.send?.(bound);
  if (library === 'ours') {
    const server = createServer(transfer);
    server.listen('127.0.0.1:0', () => told(server.where ?? ''));
  } else {
    const server = netServer(transfer);
    server.listen(0, '127.0.0.1', () => told(`127.0.0.1:${(server.address() as AddressInfo).port}`));
  }
} else {
  for (let i = 0; i < Number(count); i++) {
    const socket =
      library === 'ours' ? connect(address) : netConnect(Number(address.split(':')[1]), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.once('connect', () => transfer(socket));
  }
}
