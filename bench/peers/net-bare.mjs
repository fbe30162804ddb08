// A socket and nothing else: the bytes of the payload there and back, one call at a time, no codec. The floor of anything on node:net.
import net from 'node:net';

async function serve({ socket: path }) {
  const sockets = new Set();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('data', (chunk) => socket.write(chunk));
    socket.on('error', () => {});
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
