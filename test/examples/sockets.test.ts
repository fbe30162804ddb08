/** Tests that each program of examples/sockets runs, and prints the data that passed through its library. */
import { expect, test } from 'vitest';

const expected: Readonly<Record<string, object>> = {
  http: {
    first: 'GET /first ',
    second: 'POST /second a body',
    continued: 'PUT /third after 100',
    keptAlive: 1,
    upgraded: 'upgraded',
    halfClosed: 'HTTP/1.1 200 OK',
  },
  undici: {
    requested: { url: '/by-request', host: 'pages' },
    fetched: { url: '/by-fetch', host: 'pages' },
  },
  websocket: { answer: 'echo hello', large: 300_005, code: 1000 },
  express: { hello: { hello: 'express' }, echo: 'body' },
  fastify: { hello: { hello: 'fastify' } },
  redis: {
    ioredis: { set: 'OK', get: 'value', missing: null, pipelined: 100 },
    iovalkey: { set: 'OK', get: 'value', missing: null, pipelined: 100 },
  },
  postgres: { rows: [{ query: 'SELECT something' }] },
  http2: { answers: ['over http2: /a', 'over http2: /b', 'over http2: /c'] },
  'connect-node': {
    connect: 'over connect-node: hello, abc',
    grpc: 'over connect-node: hello, abc',
    grpcWeb: 'over connect-node: hello, abc',
  },
  grpc: { answer: 'over grpc-js' },
  tls: { seen: 'over TLS', isPsk: true },
};

test.each(Object.keys(expected))('%s', async (name) => {
  const { run } = (await import(`../../examples/sockets/${name}.ts`)) as { run(): Promise<object> };
  expect(await run()).toEqual(expected[name]);
});
