/**
 * node:http over sockets: keep-alive, a chunked body, 100-continue, an upgrade and half-close.
 */
import { once } from 'node:events';
import * as http from 'node:http';
import { text } from 'node:stream/consumers';
import { connect } from 'rdma-rpc/socket';
import { alone, asHttp, serve, stop } from './serve.ts';

export async function run(): Promise<Record<string, unknown>> {
  const pages = http.createServer(async (request, response) => {
    // Without a content-length Node sends chunks.
    response.write(`${request.method} ${request.url} `);
    response.end(await text(request));
  });
  pages.on('upgrade', (_request, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n');
    socket.pipe(socket);
  });
  let connections = 0;
  const { server, address } = await serve((socket) => {
    ++connections;
    pages.emit('connection', socket);
  }, asHttp);

  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => connect(address) as never;
  async function ask(options: http.RequestOptions, body = ''): Promise<string> {
    const request = http.request({ agent, ...options });
    const answered = once(request, 'response') as Promise<[http.IncomingMessage]>;
    if (options.headers !== undefined && 'expect' in options.headers) {
      request.flushHeaders();
      await once(request, 'continue');
    }
    request.end(body);
    const [response] = await answered;
    return await text(response);
  }
  const first = await ask({ path: '/first' });
  const second = await ask({ path: '/second', method: 'POST' }, 'a body');
  const continued = await ask(
    { path: '/third', method: 'PUT', headers: { expect: '100-continue' } },
    'after 100',
  );
  const keptAlive = connections;

  const upgrade = http.request({
    createConnection: () => connect(address) as never,
    headers: { connection: 'upgrade', upgrade: 'echo' },
  });
  upgrade.end();
  const [, socket] = (await once(upgrade, 'upgrade')) as [unknown, NodeJS.ReadWriteStream];
  socket.end('upgraded');
  const upgraded = await text(socket as never);

  // This client ends its side before the answer has arrived.
  const plain = connect(address, { allowHalfOpen: true });
  plain.end('GET /half-closed HTTP/1.1\r\nhost: pages\r\n\r\n');
  const halfClosed = (await text(plain)).split('\r\n')[0];

  agent.destroy();
  pages.close();
  await stop(server);
  return { first, second, continued, keptAlive, upgraded, halfClosed };
}

await alone(import.meta.url, run);
