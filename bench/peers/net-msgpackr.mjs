// The fastest hand-made protocol with node:net and msgpackr. All calls that one event-loop iteration has to
// send are one array, which is packed and written at once. The protocol has no deadlines, errors or flow
// control.
import net from 'node:net';
import { Packr } from 'msgpackr';
import { headOf, readFrames } from './frames.mjs';

const names = ['echo', 'put'];

/**
 * Packs the calls of one iteration as `call, kind, payload, id, call, …`, because a flat array costs msgpackr
 * the least.
 */
class Batches {
  #packr = new Packr({ useRecords: false });
  #batch = [];
  #socket;

  constructor(socket) {
    this.#socket = socket;
  }

  send(call, kind, { payload, id }) {
    // This runs after the reactions of all settled promises, any of which may have sent a call.
    if (this.#batch.length === 0) process.nextTick(() => this.#write());
    this.#batch.push(call, kind, payload, id);
  }

  #write() {
    const packed = this.#packr.pack(this.#batch);
    this.#batch = [];
    this.#socket.cork();
    this.#socket.write(headOf(packed.length, 0, 0));
    this.#socket.write(packed);
    this.#socket.uncork();
  }
}

/** Calls `take(call, kind, message)` for each call of each batch. */
function readBatches(socket, take) {
  const packr = new Packr({ useRecords: false });
  readFrames(socket, (_call, _kind, bytes) => {
    const batch = packr.unpack(bytes);
    for (let at = 0; at < batch.length; at += 4)
      take(batch[at], batch[at + 1], { payload: batch[at + 2], id: batch[at + 3] });
  });
}

async function serve({ socket: path, port }, handlers) {
  const sockets = new Set();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    const answers = new Batches(socket);
    readBatches(socket, (call, kind, message) => {
      handlers[names[kind]](message).then((answer) => answers.send(call, kind, answer));
    });
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise((resolve) => {
    if (port === undefined) server.listen(path, resolve);
    else server.listen(port, '127.0.0.1', resolve);
  });
  return {
    port: server.address().port,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

async function connect({ socket: path, port }) {
  const socket = port === undefined ? net.connect(path) : net.connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  const waiting = new Map();
  const calls = new Batches(socket);
  let last = 0;
  readBatches(socket, (call, _kind, message) => {
    waiting.get(call)(message);
    waiting.delete(call);
  });
  const call = (kind) => (message) =>
    new Promise((resolve) => {
      waiting.set(++last, resolve);
      calls.send(last, kind, message);
    });
  return {
    buffer: (_worker, bytes) => new Uint8Array(bytes),
    echo: call(0),
    put: call(1),
    close: async () => socket.destroy(),
  };
}

export const peer = { name: 'net+msgpackr', fabric: 'unix', serve, connect };
