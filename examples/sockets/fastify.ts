/**
 * An unchanged Fastify application on a server of sockets.
 */
import Fastify from 'fastify';
import { fetch } from 'undici';
import { alone, asHttp, serve, stop } from './serve.ts';
import { dispatcherTo } from './undici.ts';

export async function run(): Promise<Record<string, unknown>> {
  const app = Fastify();
  app.get<{ Params: { name: string } }>('/hello/:name', ({ params }) => ({ hello: params.name }));
  await app.ready();
  const { server, address } = await serve((socket) => void app.server.emit('connection', socket), asHttp);
  const dispatcher = dispatcherTo(address);
  const hello = await (await fetch('http://app/hello/fastify', { dispatcher })).json();
  await dispatcher.destroy();
  await app.close();
  await stop(server);
  return { hello };
}

await alone(import.meta.url, run);
