// A hand-made protocol with node:net and protobufjs. It writes once per event-loop iteration, and has no
// deadlines, errors or flow control.
import net from 'node:net';
import { FrameWriter, readFrames } from './frames.mjs';
import { Msg, numberOf } from './schema.mjs';

const names = ['echo', 'put'];

async function serve({ socket: path, port }, handlers) {
  const sockets = new Set();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    const writer = new FrameWriter(socket);
    readFrames(socket, (call, kind, bytes) => {
      const { payload, id } = Msg.decode(bytes);
      handlers[names[kind]]({ payload, id: numberOf(id) }).then((answer) => {
        writer.write(call, kind, Msg.encode(answer).finish());
      });
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
  const writer = new FrameWriter(socket);
  let last = 0;
  readFrames(socket, (call, _kind, bytes) => {
    const { payload, id } = Msg.decode(bytes);
    waiting.get(call)({ payload, id: numberOf(id) });
    waiting.delete(call);
  });
  const call = (kind) => (message) =>
    new Promise((resolve) => {
      last = (last + 1) >>> 0;
      waiting.set(last, resolve);
      writer.write(last, kind, Msg.encode(message).finish());
    });
  return {
    buffer: (_worker, bytes) => new Uint8Array(bytes),
    echo: call(0),
    put: call(1),
    close: async () => socket.destroy(),
  };
}

export const peer = { name: 'net+protobufjs', fabric: 'unix', serve, connect };
