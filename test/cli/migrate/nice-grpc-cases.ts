/**
 * Lists code for nice-grpc and the converted code.
 */
import type { Case } from './bed.ts';

export const niceCases: readonly Case[] = [
  {
    what: 'imports with local names of their own, in any script',
    before: `import { Metadata as Größe, Status as État, type CallContext as Umfeld } from 'nice-grpc';

export const größe = (context: Umfeld): Größe => context.metadata;
export const gone = État.NOT_FOUND;
`,
    after: `import { type HandlerContext, type Metadata, Status } from 'rdma-rpc';

export const größe = (context: HandlerContext): Metadata => context.metadata;
export const gone = Status.NOT_FOUND;
`,
  },
  {
    what: 'a server: definition, handlers, errors, context',
    before: `// Our server.
import { createServer, ServerError, Status, type CallContext } from 'nice-grpc';
import { GreeterDefinition, type GreeterServiceImplementation, HelloReply, type HelloRequest } from './old/greeter.ts';

const impl: Partial<GreeterServiceImplementation> = {
  async sayHello(request: HelloRequest, context: CallContext) {
    // Nobody has no name.
    if (request.name === '') throw new ServerError(Status.INVALID_ARGUMENT, 'who?');
    context.header.set('a', 'b');
    return HelloReply.fromPartial({ text: request.name });
  },
};
const server = createServer();
server.add(GreeterDefinition, impl);
export const address = server.listen('127.0.0.1:5000');
`,
    after: `// Our server.
import {
  GreeterDefinition,
  type GreeterHandlers,
  HelloReply,
  type HelloRequest,
} from './gen/greeter.rdma.ts';
import { createServer, type HandlerContext, RpcError, Status } from 'rdma-rpc';

const impl: Partial<GreeterHandlers> = {
  async sayHello(request: HelloRequest, context: HandlerContext) {
    // Nobody has no name.
    if (request.name === '') throw new RpcError(Status.INVALID_ARGUMENT, 'who?');
    context.header.set('a', 'b');
    return HelloReply.create({ text: request.name });
  },
};
const server = createServer();
server.add(GreeterDefinition, impl);
export const address = server.listen('127.0.0.1:5000');
`,
    left: [[15, /resolves with the address/]],
  },
  {
    what: 'a client: channel, credentials that say nothing, errors and their fields, metadata without new',
    before: `import { type Channel, ChannelCredentials, ClientError, createChannel, createClient, Metadata, Status } from 'nice-grpc';
import { GreeterDefinition } from './old/greeter.ts';

export async function call(port: number): Promise<string> {
  const channel: Channel = createChannel(\`http://127.0.0.1:\${port}\`, ChannelCredentials.createInsecure());
  const client = createClient(GreeterDefinition, channel);
  try {
    return (await client.sayHello({ name: 'a' }, { metadata: Metadata({ token: 'x' }) })).text;
  } catch (error) {
    if (error instanceof ClientError && error.code === Status.NOT_FOUND) return \`\${Status[error.code]}: \${error.details}\`;
    throw error;
  } finally {
    channel.close();
  }
}
`,
    after: `import { GreeterDefinition } from './gen/greeter.rdma.ts';
import {
  type Channel,
  createChannel,
  createClient,
  Metadata,
  RpcError,
  Status,
  statusName,
} from 'rdma-rpc';

export async function call(port: number): Promise<string> {
  const channel: Channel = createChannel(\`127.0.0.1:\${port}\`);
  const client = createClient(GreeterDefinition, channel);
  try {
    return (await client.sayHello({ name: 'a' }, { metadata: new Metadata({ token: 'x' }) })).text;
  } catch (error) {
    if (error instanceof RpcError && error.code === Status.NOT_FOUND) return \`\${statusName(error.code)}: \${error.rawMessage}\`;
    throw error;
  } finally {
    await channel.close();
  }
}
`,
  },
  {
    what: 'a port that listen resolves with, and forceShutdown',
    before: `import { createServer, type Server } from 'nice-grpc';

class Ours {
  readonly #server: Server = createServer();
  private other = createServer();
  async start(): Promise<number> {
    await this.other.listen('127.0.0.1:0');
    const server = createServer();
    const port = await server.listen('127.0.0.1:0');
    server.forceShutdown();
    return port;
  }
  stop(): void {
    this.other.forceShutdown();
  }
}
`,
    after: `import { createServer, type Server } from 'rdma-rpc';

class Ours {
  readonly #server: Server = createServer();
  private other = createServer();
  async start(): Promise<number> {
    await this.other.listen('127.0.0.1:0');
    const server = createServer();
    const port = Number((await server.listen('127.0.0.1:0')).split(':').at(-1));
    await server.shutdown({ graceMs: 0 });
    return port;
  }
  stop(): void {
    void this.other.shutdown({ graceMs: 0 });
  }
}
`,
  },
  {
    what: 'names that the file has itself get others',
    before: `import { Status as Code } from 'nice-grpc';

export const Status = 'ours';
export const code = Code.NOT_FOUND;
`,
    after: `import { Status as rdmaStatus } from 'rdma-rpc';

export const Status = 'ours';
export const code = rdmaStatus.NOT_FOUND;
`,
  },
  {
    what: 'middleware is left, and the rest is converted',
    before: `import { createServer } from 'nice-grpc';
import { prometheusServerMiddleware } from 'nice-grpc-prometheus';
import { GreeterDefinition } from './old/greeter.ts';

const server = createServer().use(prometheusServerMiddleware());
server.add(GreeterDefinition, {});
`,
    left: [
      [2, /nice-grpc-prometheus is built in here, or an entry point/],
      [5, /server\.use\(…\): write the middleware as an interceptor/],
    ],
    after: `import { GreeterDefinition } from './gen/greeter.rdma.ts';
import { createServer } from 'rdma-rpc';
import { prometheusServerMiddleware } from 'nice-grpc-prometheus';

const server = createServer().use(prometheusServerMiddleware());
server.add(GreeterDefinition, {});
`,
  },
  {
    what: 'TLS: the file stays as it is, except for status codes',
    before: `import { ChannelCredentials, createChannel, Status } from 'nice-grpc';

export const channel = createChannel('https://example.org:443', ChannelCredentials.createSsl());
export const gone = Status.NOT_FOUND;
`,
    after: `import { ChannelCredentials, createChannel } from 'nice-grpc';
import { Status } from 'rdma-rpc';

export const channel = createChannel('https://example.org:443', ChannelCredentials.createSsl());
export const gone = Status.NOT_FOUND;
`,
    left: [[3, /createChannel with credentials or options/]],
  },
  {
    what: 'a name that the generated code lacks: the file stays as it is',
    before: `import { createClient, createChannel } from 'nice-grpc';
import { OtherDefinition } from './old/greeter.ts';

export const client = createClient(OtherDefinition, createChannel('127.0.0.1:1'));
`,
    left: [[2, /OtherDefinition of \.\/old\/greeter\.ts is not in the code that --gen names/]],
  },
  {
    what: 'a file that only looks alike',
    before: `import { createChannel } from './ours.ts';

export const channel = createChannel('http://127.0.0.1:1');
export const status = { NOT_FOUND: 1 };
`,
  },
  {
    what: 'status codes in variables, which get other codes later',
    before: `import { Status } from 'nice-grpc';

export function codeOf(found: boolean, fallback = Status.UNKNOWN): number {
  let code = Status.NOT_FOUND;
  if (found) code = Status.OK;
  const last = Status.INTERNAL;
  return code === Status.OK ? code : fallback || last;
}
`,
    after: `import { Status, type StatusCode } from 'rdma-rpc';

export function codeOf(found: boolean, fallback: StatusCode = Status.UNKNOWN): number {
  let code: StatusCode = Status.NOT_FOUND;
  if (found) code = Status.OK;
  const last = Status.INTERNAL;
  return code === Status.OK ? code : fallback || last;
}
`,
  },
  {
    what: 'a client without middleware by the factory',
    before: `import { createChannel, createClientFactory } from 'nice-grpc';
import { GreeterDefinition } from './old/greeter.ts';

export const client = createClientFactory().create(GreeterDefinition, createChannel('127.0.0.1:1'));
`,
    after: `import { GreeterDefinition } from './gen/greeter.rdma.ts';
import { createChannel, createClient } from 'rdma-rpc';

export const client = createClient(GreeterDefinition, createChannel('127.0.0.1:1'));
`,
  },
  {
    what: 'a class of its own errors, whose constructor has other parameters: the file stays as it is',
    before: `import { ClientError } from 'nice-grpc';

class OurError extends ClientError {}
`,
    left: [[3, /ClientError\(path, code, details\) is made or extended/]],
  },
];
