/**
 * Lists code for grpc-js and the converted code.
 */
import type { Case } from './bed.ts';

export const grpcCases: readonly Case[] = [
  {
    what: 'a server: handlers with callbacks and with write, bindAsync',
    before: `import * as grpc from '@grpc/grpc-js';
import { GreeterService, type HelloReply, type HelloRequest } from './old/greeter';

function sayHello(call: grpc.ServerUnaryCall<HelloRequest, HelloReply>, callback: grpc.sendUnaryData<HelloReply>): void {
  const token = call.metadata.get('token')[0];
  if (call.request.name === '') {
    callback({ code: grpc.status.INVALID_ARGUMENT, details: 'who?' });
    return;
  }
  // The usual answer.
  callback(null, { text: \`\${call.request.name} \${token}\` });
}

const server = new grpc.Server({ 'grpc.max_receive_message_length': 1024 });
server.addService(GreeterService, {
  sayHello,
  watch: (call) => {
    for (let i = 0; i < 3; ++i) {
      call.write({ text: call.request.name + i });
    }
    call.end();
  },
});
server.bindAsync('127.0.0.1:5000', grpc.ServerCredentials.createInsecure(), (err, port) => {
  if (err) {
    console.error(err.message);
    return;
  }
  console.log(\`listening on \${port}\`);
  server.start();
});
export const stop = () => server.tryShutdown(() => console.log('gone'));
`,
    after: `import { GreeterDefinition, type HelloRequest } from './gen/greeter.rdma';
import { createServer, type HandlerContext, RpcError, Status } from 'rdma-rpc';

function sayHello(request: HelloRequest, context: HandlerContext) {
  const token = context.metadata.get('token');
  if (request.name === '') {
    throw new RpcError(Status.INVALID_ARGUMENT, 'who?');
  }
  // The usual answer.
  return { text: \`\${request.name} \${token}\` };
}

const server = createServer({ messageMaxBytes: 1024 });
server.add(GreeterDefinition, {
  sayHello,
  async *watch(request) {
    for (let i = 0; i < 3; ++i) {
      yield { text: request.name + i };
    }
  },
});
server.listen('127.0.0.1:5000').then((address) => {
  const port = Number(address.split(':').at(-1));
  console.log(\`listening on \${port}\`);
}, (err) => {
    console.error(err.message);
    return;
  });
export const stop = () => server.shutdown().then(() => console.log('gone'));
`,
  },
  {
    what: 'handlers in each form: a method, an arrow, an async one with try',
    before: `import { Server, status } from '@grpc/grpc-js';
import { GreeterService } from './old/greeter';

async function text(name: string): Promise<string> {
  return name;
}
const server = new Server();
server.addService(GreeterService, {
  sayHello: async (call, callback) => {
    try {
      callback(null, { text: await text(call.request.name) });
    } catch (e) {
      callback({ code: status.INTERNAL, message: String(e) });
    }
  },
});
new Server().addService(GreeterService, { sayHello: ({ request }, callback) => callback(null, request) });
new Server().addService(GreeterService, { sayHello: (call, callback) => callback(null, { text: call.getPeer() }) });
`,
    after: `import { Server } from '@grpc/grpc-js';
import { Status } from 'rdma-rpc';
import { GreeterService } from './old/greeter';

async function text(name: string): Promise<string> {
  return name;
}
const server = new Server();
server.addService(GreeterService, {
  sayHello: async (call, callback) => {
    try {
      callback(null, { text: await text(call.request.name) });
    } catch (e) {
      callback({ code: Status.INTERNAL, message: String(e) });
    }
  },
});
new Server().addService(GreeterService, { sayHello: ({ request }, callback) => callback(null, request) });
new Server().addService(GreeterService, { sayHello: (call, callback) => callback(null, { text: call.getPeer() }) });
`,
    left: [[17, /its parameters are not those of a handler/]],
  },
  {
    what: 'the same without the destructured parameter',
    before: `import { Server, status } from '@grpc/grpc-js';
import { GreeterService } from './old/greeter';

async function text(name: string): Promise<string> {
  return name;
}
const server = new Server();
server.addService(GreeterService, {
  sayHello: async (call, callback) => {
    try {
      callback(null, { text: await text(call.request.name) });
    } catch (e) {
      callback({ code: status.INTERNAL, message: String(e) });
    }
  },
});
new Server().addService(GreeterService, { sayHello: (call, callback) => callback(null, { text: call.getPeer() }) });
`,
    after: `import { GreeterDefinition } from './gen/greeter.rdma';
import { createServer, RpcError, Status } from 'rdma-rpc';

async function text(name: string): Promise<string> {
  return name;
}
const server = createServer();
server.add(GreeterDefinition, {
  sayHello: async (request) => {
    try {
      return { text: await text(request.name) };
    } catch (e) {
      throw new RpcError(Status.INTERNAL, String(e));
    }
  },
});
createServer().add(GreeterDefinition, { sayHello: (request, context) => ({ text: context.peer.address }) });
`,
  },
  {
    what: 'a client: calls with callbacks, metadata, deadline, close',
    before: `import * as grpc from '@grpc/grpc-js';
import { GreeterClient, type HelloReply } from './old/greeter';

const client = new GreeterClient('127.0.0.1:5000', grpc.credentials.createInsecure());
const metadata = new grpc.Metadata();
metadata.add('token', 'x');
client.sayHello({ name: 'Ada' }, metadata, { deadline: Date.now() + 1000 }, (err, reply) => {
  if (err) {
    console.error(err.code === grpc.status.NOT_FOUND, err.details);
  } else {
    console.log(reply.text);
  }
});
export const again = () =>
  new Promise<HelloReply>((resolve, reject) => {
    client.sayHello({ name: 'Ada' }, (err, reply) => (err ? reject(err) : resolve(reply)));
  });
export async function all(): Promise<void> {
  for await (const reply of client.watch({ name: 'Ada' })) console.log(reply.text);
}
client.close();
`,
    after: `import { GreeterDefinition, type HelloReply } from './gen/greeter.rdma';
import { createChannel, createClient, Metadata, Status } from 'rdma-rpc';

const clientChannel = createChannel('127.0.0.1:5000');
const client = createClient(GreeterDefinition, clientChannel);
const metadata = new Metadata();
metadata.append('token', 'x');
client.sayHello({ name: 'Ada' }, { metadata, timeoutMs: 1000 }).then((reply) => {
    console.log(reply.text);
  }, (err) => {
    console.error(err.code === Status.NOT_FOUND, err.rawMessage);
  });
export const again = () =>
  new Promise<HelloReply>((resolve, reject) => {
    client.sayHello({ name: 'Ada' }).then((reply) => resolve(reply), (err) => reject(err));
  });
export async function all(): Promise<void> {
  for await (const reply of client.watch({ name: 'Ada' })) console.log(reply.text);
}
void clientChannel.close();
`,
  },
  {
    what: 'a callback that is passed on, called elsewhere, or followed by something: the file stays as it is',
    before: `import { Server } from '@grpc/grpc-js';
import { GreeterService } from './old/greeter';

declare const find: (name: string) => Promise<{ text: string }>;
new Server().addService(GreeterService, {
  sayHello: (call, callback) => {
    find(call.request.name).then((found) => callback(null, found), callback);
  },
});
new Server().addService(GreeterService, {
  sayHello: (call, callback) => {
    callback(null, { text: call.request.name });
    console.log('answered');
  },
});
`,
    left: [
      [7, /its callback is passed on/],
      [7, /its callback is called in another function/],
      [12, /something happens after its callback/],
    ],
  },
  {
    what: 'an error that the same function would catch',
    before: `import { Server, status } from '@grpc/grpc-js';
import { GreeterService } from './old/greeter';

new Server().addService(GreeterService, {
  sayHello: (call, callback) => {
    try {
      if (call.request.name === '') callback({ code: status.NOT_FOUND, details: 'no' });
      else callback(null, { text: '' });
    } catch (e) {
      callback({ code: status.INTERNAL, details: String(e) });
    }
  },
});
`,
    after: `import { Server } from '@grpc/grpc-js';
import { Status } from 'rdma-rpc';
import { GreeterService } from './old/greeter';

new Server().addService(GreeterService, {
  sayHello: (call, callback) => {
    try {
      if (call.request.name === '') callback({ code: Status.NOT_FOUND, details: 'no' });
      else callback(null, { text: '' });
    } catch (e) {
      callback({ code: Status.INTERNAL, details: String(e) });
    }
  },
});
`,
    left: [[7, /would be caught by the same function/]],
  },
  {
    what: 'streams of requests, TLS, and code that is loaded at run time',
    before: `import * as grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { GreeterClient, GreeterService } from './old/greeter';

export const loaded = grpc.loadPackageDefinition(loadSync('greeter.proto'));
new grpc.Server().addService(GreeterService, {
  join: (call, callback) => {
    call.on('data', () => undefined);
    call.on('end', () => callback(null, { text: '' }));
  },
});
const client = new GreeterClient('127.0.0.1:5000', grpc.credentials.createSsl());
const stream = client.watch({});
stream.on('data', console.log);
`,
    left: [
      [2, /proto-loader loads \.proto files at run time/],
      [5, /loadPackageDefinition of grpc-js/],
      [8, /call\.on has another form here/],
      [9, /call\.on has another form here/],
      [9, /its callback is called in another function/],
      [12, /with credentials or options/],
      [13, /has no callback: a stream is read with for await/],
    ],
  },
  {
    what: 'a client whose class comes from proto-loader',
    before: `import { credentials } from '@grpc/grpc-js';
import { shop } from './loaded';
const client = new shop.Orders('127.0.0.1:5000', credentials.createInsecure());
`,
    left: [
      [3, /^credentials\.createInsecure\(\): the client or server that takes it is not recognized as one/],
    ],
  },
  {
    what: 'a callback that does not check its error first',
    before: `import { credentials } from '@grpc/grpc-js';
import { GreeterClient } from './old/greeter';
const client = new GreeterClient('127.0.0.1:5000', credentials.createInsecure());
client.sayHello({ name: 'Ada' }, (error, reply) => {
  if (error && error.code === 5) return;
  console.log(reply.text);
});
`,
    left: [
      [4, /only callbacks that begin with if \(error\), and the options metadata and deadline are converted/],
    ],
  },
  {
    what: 'CommonJS',
    before: `const grpc = require('@grpc/grpc-js');
exports.gone = grpc.status.NOT_FOUND;
`,
    left: [[1, /this package has ES modules only/]],
  },
  {
    what: 'handlers that say by their types what they are, registered in another file',
    before: `import type { sendUnaryData, ServerUnaryCall, ServerWritableStream } from '@grpc/grpc-js';
import type { HelloReply, HelloRequest } from './old/greeter';

/**
 * @param call the call
 * @param callback gets the answer
 */
export const sayHello = async (call: ServerUnaryCall<HelloRequest, HelloReply>, callback: sendUnaryData<HelloReply>) => {
  callback(null, { text: call.request.name });
};
export function watch(call: ServerWritableStream<HelloRequest, HelloReply>): void {
  for (const text of [call.request.name, '!']) call.write({ text });
  call.end();
}
`,
    after: `import type { HelloRequest } from './gen/greeter.rdma';

/**
 * @param call the call
 * @param callback gets the answer
 */
export const sayHello = async (request: HelloRequest) => {
  return { text: request.name };
};
export async function* watch(request: HelloRequest) {
  for (const text of [request.name, '!']) yield { text };
}
`,
  },
  {
    what: 'and the file that registers them',
    before: `import { Server } from '@grpc/grpc-js';
import { GreeterService } from './old/greeter';
import { sayHello } from './handlers';

new Server().addService(GreeterService, { sayHello });
`,
    after: `import { GreeterDefinition } from './gen/greeter.rdma';
import { createServer } from 'rdma-rpc';
import { sayHello } from './handlers';

createServer().add(GreeterDefinition, { sayHello });
`,
    left: [[5, /a handler of another file: see that it has been converted/]],
  },
  {
    what: 'a class of handlers, with the index signature that grpc-js wants',
    before: `import type { sendUnaryData, ServerUnaryCall, UntypedHandleCall } from '@grpc/grpc-js';
import type { GreeterServer, HelloReply, HelloRequest } from './old/greeter';

class GreeterService implements Partial<GreeterServer> {
  [name: string]: UntypedHandleCall;
  sayHello(call: ServerUnaryCall<HelloRequest, HelloReply>, callback: sendUnaryData<HelloReply>) {
    callback(null, { text: call.request.name });
  }
}
`,
    after: `import type { GreeterHandlers, HelloRequest } from './gen/greeter.rdma';

class GreeterService implements Partial<GreeterHandlers> {
  sayHello(request: HelloRequest) {
    return { text: request.name };
  }
}
`,
  },
  {
    what: 'messages with getters: the file stays as it is',
    before: `import type { sendUnaryData, ServerUnaryCall } from '@grpc/grpc-js';
import { HelloReply, type HelloRequest } from './gen/greeter_pb';

export function sayHello(call: ServerUnaryCall<HelloRequest, HelloReply>, callback: sendUnaryData<HelloReply>) {
  const reply = new HelloReply();
  reply.setText(call.request.getName());
  callback(null, reply);
}
`,
    left: [
      [5, /new HelloReply\(\): messages are plain objects, without setters/],
      [6, /call\.request\.getName\(\): messages are plain objects, without getters/],
    ],
  },
];
