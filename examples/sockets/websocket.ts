/**
 * ws over sockets. The server takes upgrades of node:http, and the client makes its own connection.
 */
import { once } from 'node:events';
import * as http from 'node:http';
import { connect } from 'rdma-rpc/socket';
import { WebSocket, WebSocketServer } from 'ws';
import { alone, asHttp, serve, stop } from './serve.ts';

export async function run(): Promise<Record<string, unknown>> {
  const pages = http.createServer();
  const rooms = new WebSocketServer({ server: pages });
  rooms.on('connection', (client) => client.on('message', (data) => client.send(`echo ${String(data)}`)));
  const { server, address } = await serve((socket) => void pages.emit('connection', socket), asHttp);

  const client = new WebSocket('ws://rooms/', { createConnection: () => connect(address) as never });
  await once(client, 'open');
  client.send('hello');
  const [answer] = (await once(client, 'message')) as [Buffer];
  client.send(Buffer.alloc(300_000, 'x').toString());
  const [large] = (await once(client, 'message')) as [Buffer];
  client.close(1000);
  const [code] = (await once(client, 'close')) as [number];
  rooms.close();
  pages.close();
  await stop(server);
  return { answer: String(answer), large: large.length, code };
}

await alone(import.meta.url, run);
