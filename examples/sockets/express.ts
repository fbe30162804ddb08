/**
 * An unchanged Express application on a server of sockets.
 */
import * as http from 'node:http';
import { text } from 'node:stream/consumers';
import express from 'express';
import { fetch } from 'undici';
import { alone, asHttp, serve, stop } from './serve.ts';
import { dispatcherTo } from './undici.ts';

export async function run(): Promise<Record<string, unknown>> {
  const app = express();
  app.get('/hello/:name', (request, response) => void response.json({ hello: request.params.name }));
  app.post('/echo', async (request, response) => void response.send(await text(request)));
  const pages = http.createServer(app);
  const { server, address } = await serve((socket) => void pages.emit('connection', socket), asHttp);
  const dispatcher = dispatcherTo(address);
  const hello = await (await fetch('http://app/hello/express', { dispatcher })).json();
  const echo = await (await fetch('http://app/echo', { dispatcher, method: 'POST', body: 'body' })).text();
  await dispatcher.destroy();
  pages.close();
  await stop(server);
  return { hello, echo };
}

await alone(import.meta.url, run);
