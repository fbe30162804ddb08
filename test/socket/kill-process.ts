/**
 * A process that is killed: run by kill.test.ts with the library, and the address of a server that listens on
 * `node:net` and on rdma-rpc/socket, as `LIBRARY ADDRESS COUNT`. It opens COUNT connections, and sends and
 * receives until it is killed. Plain imports of the package, since it runs on the built one.
 */
import { connect as netConnect } from 'node:net';
import { fileURLToPath } from 'node:url';

const [library, address, count] = process.argv.slice(2) as [string, string, string];
const built = fileURLToPath(new URL('../../dist/bundle/socket.js', import.meta.url));
const { connect } = (await import(built)) as typeof import('rdma-rpc/socket');
const block = Buffer.alloc(100_000, 'kill');

for (let i = 0; i < Number(count); i++) {
  const socket = library === 'ours' ? connect(address) : netConnect(Number(address.split(':')[1]), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.resume();
  const write = (): void => {
    if (!socket.destroyed) socket.write(block, () => setImmediate(write));
  };
  socket.once('connect', write);
}
