/**
 * Lists code for connect-es and the converted code.
 */
import type { Case } from './bed.ts';

export const connectCases: readonly Case[] = [
  {
    what: 'conversions three and four levels deep',
    before: `import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { HelloReplySchema, Mood } from './gen/greeter_pb.js';

export function refuse(): never {
  throw new ConnectError(String(create(HelloReplySchema, { text: String(Mood.GOOD) })), Code.NotFound);
}

export const twice = (): ConnectError =>
  new ConnectError(
    JSON.stringify(
      create(HelloReplySchema, { text: String(create(HelloReplySchema, { text: String(Mood.GOOD) })) }),
    ),
    Code.Aborted,
  );
`,
    after: `import { HelloReply, Mood } from './gen/greeter.rdma.js';
import { RpcError, Status } from 'rdma-rpc';

export function refuse(): never {
  throw new RpcError(Status.NOT_FOUND, String(HelloReply.create({ text: String(Mood.MOOD_GOOD) })));
}

export const twice = (): RpcError =>
  new RpcError(Status.ABORTED, JSON.stringify(
      HelloReply.create({ text: String(HelloReply.create({ text: String(Mood.MOOD_GOOD) })) }),
    ));
`,
  },
  {
    what: 'routes: services, errors, headers',
    before: `import { Code, ConnectError, type ConnectRouter } from '@connectrpc/connect';
import { create } from '@bufbuild/protobuf';
import { Greeter, HelloReplySchema } from './gen/greeter_pb.js';

export default (router: ConnectRouter) =>
  router.service(Greeter, {
    async sayHello(request, context) {
      if (request.name === '') throw new ConnectError('who?', Code.InvalidArgument);
      if (request.name === 'x') throw new ConnectError(\`gone: \${Code.Canceled}\`);
      context.responseHeader.set('a', context.requestHeader.get('b') ?? '');
      context.responseTrailer.append('c', 'd');
      return create(HelloReplySchema, { text: request.name });
    },
    async *watch(request) {
      yield { text: request.name };
    },
  });
`,
    after: `import { GreeterDefinition, HelloReply } from './gen/greeter.rdma.js';
import { RpcError, type Server, Status } from 'rdma-rpc';

export default (router: Server) =>
  router.add(GreeterDefinition, {
    async sayHello(request, context) {
      if (request.name === '') throw new RpcError(Status.INVALID_ARGUMENT, 'who?');
      if (request.name === 'x') throw new RpcError(Status.UNKNOWN, \`gone: \${Status.CANCELLED}\`);
      context.header.set('a', context.metadata.get('b') ?? '');
      context.trailer.append('c', 'd');
      return HelloReply.create({ text: request.name });
    },
    async *watch(request) {
      yield { text: request.name };
    },
  });
`,
  },
  {
    what: 'a client: transport, call options, errors',
    before: `import { type Client, Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Greeter, type HelloReply, HelloRequestSchema } from './gen/greeter_pb.js';

const client: Client<typeof Greeter> = createClient(Greeter, createGrpcTransport({ baseUrl: 'http://localhost:5000' }));

export async function call(init: MessageInitShape<typeof HelloRequestSchema>): Promise<HelloReply> {
  try {
    return await client.sayHello(init, { headers: { token: 'x' }, timeoutMs: 1000 });
  } catch (e) {
    if (e instanceof ConnectError) console.log(e.metadata.get('x'), e.rawMessage);
    const error = ConnectError.from(e);
    throw error.code === Code.NotFound ? new ConnectError('gone', Code.NotFound, { a: 'b' }) : error;
  }
}
`,
    after: `import { GreeterDefinition, type HelloReply, type HelloRequestInit } from './gen/greeter.rdma.js';
import { type Client, createChannel, createClient, RpcError, Status } from 'rdma-rpc';

const client: Client<typeof GreeterDefinition> = createClient(GreeterDefinition, createChannel('localhost:5000'));

export async function call(init: HelloRequestInit): Promise<HelloReply> {
  try {
    return await client.sayHello(init, { metadata: { token: 'x' }, timeoutMs: 1000 });
  } catch (e) {
    if (e instanceof RpcError) console.log(e.trailer.get('x'), e.rawMessage);
    const error = RpcError.from(e);
    throw error.code === Status.NOT_FOUND ? new RpcError(Status.NOT_FOUND, 'gone', { trailer: { a: 'b' } }) : error;
  }
}
`,
  },
  {
    what: 'the names of connect-es 1: promise client, message classes',
    before: `import { createPromiseClient, type PromiseClient, type Transport } from '@bufbuild/connect';
import { Greeter } from './gen/greeter_connect';
import { HelloRequest } from './gen/greeter_pb';

export function make(transport: Transport): PromiseClient<typeof Greeter> {
  return createPromiseClient(Greeter, transport);
}
export const request = new HelloRequest({ name: 'Ada' });
`,
    after: `import { GreeterDefinition, HelloRequest } from './gen/greeter.rdma';
import { type Channel, type Client, createClient } from 'rdma-rpc';

export function make(transport: Channel): Client<typeof GreeterDefinition> {
  return createClient(GreeterDefinition, transport);
}
export const request = HelloRequest.create({ name: 'Ada' });
`,
  },
  {
    what: 'bytes, JSON and context values',
    before: `import { createContextKey, createContextValues } from '@connectrpc/connect';
import { fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import { HelloReplySchema } from './gen/greeter_pb.js';

export const key = createContextKey(0);
export const values = createContextValues().set(key, 1);
export const bytes = toBinary(HelloReplySchema, fromBinary(HelloReplySchema, new Uint8Array()));
export const json = toJson(HelloReplySchema, fromBinary(HelloReplySchema, bytes));
`,
    after: `import { HelloReply } from './gen/greeter.rdma.js';
import { ContextValues, createContextKey } from 'rdma-rpc';
import { toJson } from 'rdma-rpc/json';

export const key = createContextKey(0);
export const values = new ContextValues().set(key, 1);
export const bytes = HelloReply.encode(HelloReply.decode(new Uint8Array()));
export const json = toJson(HelloReply, HelloReply.decode(bytes));
`,
  },
  {
    what: 'a browser, an interceptor, the HTTP server, a URL that is not written there: the files stay as they are',
    before: `import type { Interceptor } from '@connectrpc/connect';
import { createClient } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { createConnectTransport } from '@connectrpc/connect-web';
import { Greeter } from './gen/greeter_pb.js';
import routes from './routes.js';

export const log: Interceptor = (next) => (req) => next(req);
export const handler = connectNodeAdapter({ routes });
export const client = createClient(Greeter, createConnectTransport({ baseUrl: location.origin }));
`,
    left: [
      [8, /Interceptor: write it for the requests/],
      [9, /connectNodeAdapter: createServer\(\) and listen\(\)/],
      [10, /a browser cannot be a client/],
    ],
  },
  {
    what: 'a header that is compared with null, which is undefined here',
    before: `import type { HandlerContext } from '@connectrpc/connect';

export const has = (context: HandlerContext) => context.requestHeader.get('a') !== null;
`,
    left: [[3, /a key that is not there gives undefined/]],
  },
  {
    what: 'an error with details',
    before: `import { Code, ConnectError } from '@connectrpc/connect';

export const make = (detail: never) => new ConnectError('no', Code.NotFound, undefined, [detail]);
`,
    after: `import { ConnectError } from '@connectrpc/connect';
import { Status } from 'rdma-rpc';

export const make = (detail: never) => new ConnectError('no', Status.NOT_FOUND, undefined, [detail]);
`,
    left: [[3, /ConnectError with details, a cause or comments/]],
  },
];
