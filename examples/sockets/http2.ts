/**
 * node:http2 over sockets, as connect-node and others use it, by `createConnection` of the client's session.
 */
import { once } from 'node:events';
import * as http2 from 'node:http2';
import { text } from 'node:stream/consumers';
import { connect } from 'rdma-rpc/socket';
import { alone, serve, stop } from './serve.ts';

export async function run(): Promise<Record<string, unknown>> {
  const pages = http2.createServer((request, response) => response.end(`over http2: ${request.url}`));
  const { server, address } = await serve((socket) => void pages.emit('connection', socket));
  const session = http2.connect('http://pages', { createConnection: () => connect(address) });
  const ask = async (path: string): Promise<string> => await text(session.request({ ':path': path }));
  const answers = await Promise.all(['/a', '/b', '/c'].map(ask));
  session.close();
  await once(session, 'close');
  pages.close();
  await stop(server);
  return { answers };
}

await alone(import.meta.url, run);
