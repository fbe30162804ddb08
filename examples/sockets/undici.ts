/** undici and its fetch over sockets: an Agent whose connections are sockets. */
import * as http from 'node:http';
import { connect } from 'rdma-rpc/socket';
import { Agent, fetch, request } from 'undici';
import { alone, asHttp, serve, stop } from './serve.ts';

/** Returns a Dispatcher that reaches every URL at `address`. */
export function dispatcherTo(address: string): Agent {
  return new Agent({
    connect: (_options, callback) => {
      const socket = connect(address);
      socket.once('connect', () => callback(null, socket as never));
      socket.once('error', (error) => callback(error, null));
    },
  });
}

export async function run(): Promise<Record<string, unknown>> {
  const pages = http.createServer((incoming, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ url: incoming.url, host: incoming.headers.host }));
  });
  const { server, address } = await serve((socket) => void pages.emit('connection', socket), asHttp);
  const dispatcher = dispatcherTo(address);
  const { body } = await request('http://pages/by-request', { dispatcher });
  const requested = await body.json();
  const response = await fetch('http://pages/by-fetch', { dispatcher });
  const fetched = await response.json();
  await dispatcher.destroy();
  pages.close();
  await stop(server);
  return { requested, fetched };
}

await alone(import.meta.url, run);
