// The peer Cap'n Web, which has objects and promises over JSON. Its messages are strings, as over a
// WebSocket. They travel in frames of ours on a unix socket, which costs less than a WebSocket. Cap'n Web
// encodes `bytes` as base64. All other settings have their defaults.
import net from 'node:net';
import { RpcSession, RpcTarget } from 'capnweb';
import { FrameWriter, readFrames } from './frames.mjs';

/**
 * Returns a socket with the interface that capnweb expects, which sends strings and returns a promise of the
 * next string.
 */
function transportOf(socket) {
  const writer = new FrameWriter(socket);
  const arrived = [];
  let closed;
  let waiting;
  readFrames(socket, (_call, _kind, bytes) => {
    const text = Buffer.prototype.toString.call(bytes, 'utf8');
    if (waiting === undefined) return arrived.push(text);
    waiting.resolve(text);
    waiting = undefined;
  });
  socket.on('close', () => {
    closed = new Error('the socket is closed');
    waiting?.reject(closed);
  });
  socket.on('error', () => {});
  return {
    send: (text) => writer.write(0, 0, Buffer.from(text, 'utf8')),
    receive() {
      if (arrived.length > 0) return Promise.resolve(arrived.shift());
      if (closed !== undefined) return Promise.reject(closed);
      return new Promise((resolve, reject) => {
        waiting = { resolve, reject };
      });
    },
    abort: () => socket.destroy(),
  };
}

async function serve({ socket: path }, handlers) {
  class Bench extends RpcTarget {
    echo(message) {
      return handlers.echo(message);
    }
    put(message) {
      return handlers.put(message);
    }
  }
  const sockets = new Set();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    new RpcSession(transportOf(socket), new Bench());
  });
  await new Promise((resolve) => server.listen(path, resolve));
  return {
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

async function connect({ socket: path }) {
  const socket = net.connect(path);
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  const main = new RpcSession(transportOf(socket)).getRemoteMain();
  return {
    buffer: (_worker, bytes) => new Uint8Array(bytes),
    echo: (message) => main.echo(message),
    put: (message) => main.put(message),
    close: async () => socket.destroy(),
  };
}

export const peer = { name: 'capnweb', fabric: 'unix', serve, connect };
