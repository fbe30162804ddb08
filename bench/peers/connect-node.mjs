// @connectrpc/connect-node, the gRPC protocol over HTTP/2 without TLS, with protobuf-es, over a unix socket.
import http2 from 'node:http2';
import net from 'node:net';
import { createClient } from '@connectrpc/connect';
import { connectNodeAdapter, createGrpcTransport } from '@connectrpc/connect-node';
import { benchService } from './schema.mjs';

// At the default of 10 MB, eight messages of 1 MiB end the session with ENHANCE_YOUR_CALM.
const maxSessionMemory = 1000;

async function serve({ socket }, handlers) {
  const service = benchService();
  const unary = (handler) => async (request) => {
    const answer = await handler({ payload: request.payload, id: Number(request.id) });
    return { payload: answer.payload, id: BigInt(answer.id) };
  };
  const adapter = connectNodeAdapter({
    routes: (router) => router.service(service, { echo: unary(handlers.echo), put: unary(handlers.put) }),
  });
  const server = http2.createServer({ maxSessionMemory }, adapter);
  await new Promise((resolve) => server.listen(socket, resolve));
  return { close: async () => server.close() };
}

async function connect({ socket }) {
  const transport = createGrpcTransport({
    baseUrl: 'http://localhost',
    nodeOptions: { maxSessionMemory, createConnection: () => net.connect(socket) },
  });
  const client = createClient(benchService(), transport);
  const call = (name) => async (message) => {
    const answer = await client[name]({ payload: message.payload, id: BigInt(message.id) });
    return { payload: answer.payload, id: Number(answer.id) };
  };
  return {
    buffer: (_worker, bytes) => new Uint8Array(bytes),
    echo: call('echo'),
    put: call('put'),
    close: async () => {},
  };
}

export const peer = { name: 'connect-node', fabric: 'unix', serve, connect };
