/**
 * grpc-js over sockets. The server takes connections by a connection injector. The client has no option for a
 * connection of the application, so it dials a port of this process, which passes the bytes on over sockets.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer as createNetServer } from 'node:net';
import * as grpc from '@grpc/grpc-js';
import { connect } from 'rdma-rpc/socket';
import { alone, serve, stop } from './serve.ts';

const asIs = (bytes: Buffer): Buffer => bytes;
const method = {
  path: '/example.Echo/Echo',
  requestStream: false,
  responseStream: false,
  requestSerialize: asIs,
  requestDeserialize: asIs,
  responseSerialize: asIs,
  responseDeserialize: asIs,
} as const;

export async function run(): Promise<Record<string, unknown>> {
  const service = new grpc.Server();
  service.addService({ echo: method }, {
    echo: (call: { request: Buffer }, answer: (error: null, value: Buffer) => void) =>
      answer(null, call.request),
  } as never);
  const injector = service.createConnectionInjector(grpc.ServerCredentials.createInsecure());
  const { server, address } = await serve((socket) => injector.injectConnection(socket));

  const bridge = createNetServer((near) => {
    const far = connect(address);
    near.pipe(far).pipe(near);
    near.on('error', () => far.destroy());
    far.on('error', () => near.destroy());
  });
  bridge.listen(0, '127.0.0.1');
  await once(bridge, 'listening');
  const { port } = bridge.address() as AddressInfo;
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
  const answer = await new Promise<Buffer>((resolve, reject) => {
    client.makeUnaryRequest(method.path, asIs, asIs, Buffer.from('over grpc-js'), (error, value) =>
      error === null ? resolve(value!) : reject(error),
    );
  });
  client.close();
  injector.destroy();
  service.forceShutdown();
  bridge.close();
  await stop(server);
  return { answer: String(answer) };
}

await alone(import.meta.url, run);
