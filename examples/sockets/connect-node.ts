/**
 * connect-node over sockets: its client and its server speak HTTP/2, and both take a connection of the
 * application. The example uses all three protocols of its clients: Connect, gRPC and gRPC-Web.
 */
import * as http2 from 'node:http2';
import { create, createFileRegistry, type DescService } from '@bufbuild/protobuf';
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from '@bufbuild/protobuf/wkt';
import { createClient, type ServiceImpl, type Transport } from '@connectrpc/connect';
import {
  connectNodeAdapter,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { connect } from 'rdma-rpc/socket';
import { alone, asHttp, serve, stop } from './serve.ts';

/** Returns the descriptor that protoc-gen-es would generate for a service with a unary call and a stream. */
function echoService(): DescService {
  const text = '.example.Text';
  const file = create(FileDescriptorProtoSchema, {
    name: 'example/echo.proto',
    package: 'example',
    syntax: 'proto3',
    messageType: [
      {
        name: 'Text',
        field: [
          {
            name: 'text',
            jsonName: 'text',
            number: 1,
            type: FieldDescriptorProto_Type.STRING,
            label: FieldDescriptorProto_Label.OPTIONAL,
          },
        ],
      },
    ],
    service: [
      {
        name: 'Echo',
        method: [
          { name: 'Say', inputType: text, outputType: text },
          { name: 'Letters', inputType: text, outputType: text, serverStreaming: true },
        ],
      },
    ],
  });
  return createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getService('example.Echo')!;
}

interface Text {
  readonly text: string;
}
interface Client {
  say(request: Text): Promise<Text>;
  letters(request: Text): AsyncIterable<Text>;
}

export async function run(): Promise<Record<string, unknown>> {
  const service = echoService();
  const handlers = {
    say: ({ text }: Text) => ({ text: `over connect-node: ${text}` }),
    async *letters({ text }: Text) {
      for (const letter of text) yield { text: letter };
    },
  };
  const pages = http2.createServer(
    connectNodeAdapter({
      routes: (router) => void router.service(service, handlers as unknown as ServiceImpl<DescService>),
    }),
  );
  const { server, address } = await serve((socket) => void pages.emit('connection', socket), asHttp);

  const options = {
    baseUrl: 'http://pages',
    httpVersion: '2',
    nodeOptions: { createConnection: () => connect(address) },
  } as const;
  const ask = async (transport: Transport): Promise<string> => {
    const client = createClient(service, transport) as unknown as Client;
    const { text } = await client.say({ text: 'hello' });
    let letters = '';
    for await (const each of client.letters({ text: 'abc' })) letters += each.text;
    return `${text}, ${letters}`;
  };
  const answers = {
    connect: await ask(createConnectTransport(options)),
    grpc: await ask(createGrpcTransport(options)),
    grpcWeb: await ask(createGrpcWebTransport(options)),
  };
  pages.close();
  await stop(server);
  return answers;
}

await alone(import.meta.url, run);
