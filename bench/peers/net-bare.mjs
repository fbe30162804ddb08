// This peer is only a socket. The bytes of the payload travel back and forth, one call at a time, without a
// codec. It is the lower bound for any framework on node:net.
import net from 'node:net';

async function serve({ socket: path, port }) {
  const sockets = new Set();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('data', (chunk) => socket.write(chunk));
    socket.on('error', () => {});
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
  let answer = () => {};
  socket.on('data', (chunk) => answer(chunk));
  return {
    buffer: (_worker, bytes) => new Uint8Array(bytes),
    echo: (message) =>
      new Promise((resolve) => {
        answer = (payload) => resolve({ payload, id: message.id });
        socket.write(message.payload);
      }),
    put: () => Promise.reject(new Error('bare sockets have no put')),
    close: async () => socket.destroy(),
  };
}

export const peer = { name: 'net bare', fabric: 'unix', serve, connect };
