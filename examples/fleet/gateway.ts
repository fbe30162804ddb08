/**
 * The gateway of the fleet, a separate process: `gateway.js REGISTRY`. It takes `POST
 * /greeter.v1.Greeter/SayHello` with JSON, as Connect's clients send it, and calls the fleet by the typed
 * client. `GET /fleet` returns the servers from its point of view.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createChannel, createClient, RpcError, Status, statusName } from 'rdma-rpc';
import { fromJsonString, toJson } from 'rdma-rpc/json';
import { GreeterDefinition, HelloReply, HelloRequest } from '../hello/gen/greeter.rdma.ts';
import { resolverOf } from './registry.ts';

const [registry = ''] = process.argv.slice(2);
const channel = createChannel(resolverOf(registry), {
  resolveMinMs: 50,
  backoffMs: 50,
  backoffMaxMs: 500,
  connectTimeoutMs: 1_000,
  // All clients of the gateway share this channel, and a server that dies fails a third of their calls at
  // once.
  serviceConfig: { retryThrottling: { maxTokens: 500, tokenRatio: 0.1 } },
  log: () => undefined,
});
const greeter = createClient(GreeterDefinition, channel, {
  // A server that was killed fails its calls, and they are made again at once. A server that is cut off does
  // not answer. After 250 ms, its call also goes to another server.
  sayHello: {
    timeoutMs: 30_000,
    waitForReady: true,
    idempotent: true,
    hedging: { attemptsMax: 3, delayMs: 250 },
  },
});

/** The name in HTTP for each code with which this service can answer. */
const httpStatus = new Map<number, number>([
  [Status.INVALID_ARGUMENT, 400],
  [Status.UNAVAILABLE, 503],
  [Status.DEADLINE_EXCEEDED, 504],
]);

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Rejects when the request is not a request of this method. */
async function messageOf(request: IncomingMessage): Promise<HelloRequest> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk;
    if (text.length > 65_536) throw new Error('the body is too long');
  }
  return fromJsonString(HelloRequest, text);
}

async function sayHello(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let message: HelloRequest;
  try {
    message = await messageOf(request);
  } catch (error) {
    reply(response, 400, { code: 'invalid_argument', message: String(error) });
    return;
  }
  try {
    reply(response, 200, toJson(HelloReply, await greeter.sayHello(message)));
  } catch (error) {
    const { code, message: text } = RpcError.from(error, Status.INTERNAL);
    reply(response, httpStatus.get(code) ?? 500, { code: statusName(code).toLowerCase(), message: text });
  }
}

const http = createServer((request, response) => {
  if (request.method === 'GET' && request.url === '/fleet') {
    reply(
      response,
      200,
      channel.addresses.map(({ address, state, stale }) => ({ address, state, stale })),
    );
  } else if (request.method === 'POST' && request.url === '/greeter.v1.Greeter/SayHello') {
    void sayHello(request, response);
  } else reply(response, 404, { code: 'unimplemented', message: `${request.method} ${request.url}` });
});
http.listen(0, '127.0.0.1');
await once(http, 'listening');
process.once('disconnect', () => process.exit(0));
// Connects before the first call. It fails when no server appears, which the parent notices by GET /fleet.
channel.ready({ timeoutMs: 60_000 }).catch(() => undefined);
process.send?.(`http://127.0.0.1:${(http.address() as AddressInfo).port}`);
