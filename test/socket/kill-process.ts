/**
 * A process that is killed: run by kill.test.ts with the library, and the address of a server that listens on
 * `node:net` and on rdma-rpc/socket, as `LIBRARY ADDRESS COUNT`. It opens COUNT connections, and sends and
 * receives until it is killed.
 */
import { connect as netConnect } from 'node:net';
import { connect } from 'rdma-rpc/socket';

const [library, address, count] = process.argv.slice(2) as [string, string, string];
const block = Buffer.alloc(100_000, 'kill');

for (let i = 0; i < Number(count); i++) {
  const socket =
    library === 'ours' ? connect(address) : netConnect(Number(address.split(':')[1]), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.resume();
  const write = (): void => {
    if (!socket.destroyed) socket.write(block, () => setImmediate(write));
  };
  socket.once('connect', write);
}
