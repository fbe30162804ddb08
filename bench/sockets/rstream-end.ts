/**
 * One end of the traffic of `rstream` (rdma-core) over `rdma-rpc/socket`, started by rstream.ts. In each
 * iteration the client sends a number of blocks, and then the server sends the same number. Like rstream, the
 * program counts the time of the client, and both directions.
 *
 *   node rstream-end.js server ADDRESS DEVICE TRAFFIC    prints "ready", and serves until it is killed
 *   node rstream-end.js client ADDRESS DEVICE TRAFFIC    prints the microseconds of each block
 */
import type { Duplex } from 'node:stream';
import { configure } from 'rdma-rpc';
import { connect, createServer } from 'rdma-rpc/socket';

/** The traffic of one measurement, the same for both ends and for rstream. */
export interface Traffic {
  readonly polling: 'adaptive' | 'busy' | 'event';
  readonly bytes: number;
  readonly blocks: number;
  readonly iterations: number;
  /** Iterations before the measured ones. V8 compiles the code in this time. */
  readonly warmUp: number;
}

const [role, address = '', device = '', traffic = '{}'] = process.argv.slice(2);
const { polling, bytes, blocks, iterations, warmUp } = JSON.parse(traffic) as Traffic;
const block = Buffer.alloc(bytes, 7);

/** Calls `then` when the socket has taken all blocks of one direction. */
function sendAll(socket: Duplex, then: () => void): void {
  let left = blocks;
  const more = (): void => {
    while (left > 0) {
      --left;
      if (!socket.write(block) && left > 0) return void socket.once('drain', more);
    }
    then();
  };
  more();
}

/** Calls `then` each time when all blocks of one direction have arrived. */
function eachDirection(socket: Duplex, then: () => void): void {
  let missing = bytes * blocks;
  socket.on('data', (chunk: Buffer) => {
    missing -= chunk.byteLength;
    if (missing > 0) return;
    missing += bytes * blocks;
    then();
  });
}

const ignore = (): void => undefined;

function serve(): void {
  const server = createServer({ server: { fabric: 'verbs', verbs: { device } } }, (socket) => {
    socket.on('error', ignore);
    eachDirection(socket, () => sendAll(socket, ignore));
  });
  server.listen(address, () => console.log('ready'));
}

function play(): void {
  const socket = connect(address, { channel: { fabric: 'verbs', verbs: { device } } });
  let done = -warmUp;
  let beginNs = process.hrtime.bigint();
  eachDirection(socket, () => {
    if (++done === 0) beginNs = process.hrtime.bigint();
    if (done < iterations) return sendAll(socket, ignore);
    const us = Number(process.hrtime.bigint() - beginNs) / 1000;
    console.log(`${us / (2 * blocks * iterations)} us each`);
    process.exit(0);
  });
  sendAll(socket, ignore);
}

if (role !== undefined) {
  configure({ polling });
  if (role === 'server') serve();
  else play();
}
