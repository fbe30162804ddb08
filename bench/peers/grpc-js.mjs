// The peer grpc-js with protobufjs, over a unix socket or TCP. Message limits are lifted; all other settings
// have their defaults.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import grpc from '@grpc/grpc-js';
import { Msg, numberOf } from './schema.mjs';

const serialize = (message) => Msg.encode(message).finish();
const deserialize = (bytes) => {
  const { payload, id } = Msg.decode(bytes);
  return { payload, id: numberOf(id) };
};
const method = (name) => ({
  path: `/bench.v1.Bench/${name}`,
  requestStream: false,
  responseStream: false,
  requestSerialize: serialize,
  requestDeserialize: deserialize,
  responseSerialize: serialize,
  responseDeserialize: deserialize,
});
const service = { echo: method('Echo'), put: method('Put') };
const limits = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };

const unary = (handler) => (call, callback) => {
  handler(call.request).then(
    (answer) => callback(null, answer),
    (error) => callback(error),
  );
};

/** As in our peer, both sides of TLS have certificates. */
const materialOf = ({ tls }) => ['ca', 'key', 'cert'].map((name) => readFileSync(join(tls, `${name}.pem`)));
function serverCredentials(options) {
  if (options.tls === undefined) return grpc.ServerCredentials.createInsecure();
  const [ca, private_key, cert_chain] = materialOf(options);
  return grpc.ServerCredentials.createSsl(ca, [{ private_key, cert_chain }], true);
}
const clientCredentials = (options) =>
  options.tls === undefined
    ? grpc.credentials.createInsecure()
    : grpc.credentials.createSsl(...materialOf(options));

const addressOf = ({ socket, port }) => (port === undefined ? `unix:${socket}` : `127.0.0.1:${port}`);

function serve(options, handlers) {
  const server = new grpc.Server(limits);
  server.addService(service, { echo: unary(handlers.echo), put: unary(handlers.put) });
  return new Promise((resolve, reject) => {
    server.bindAsync(addressOf(options), serverCredentials(options), (error, port) => {
      if (error) return reject(error);
      resolve({ port, close: async () => server.forceShutdown() });
    });
  });
}

function connect(options) {
  const Client = grpc.makeGenericClientConstructor(service, 'Bench');
  // Use a separate connection for each client, because clients would share a connection by default.
  const own = { ...limits, 'grpc.use_local_subchannel_pool': 1 };
  const client = new Client(addressOf(options), clientCredentials(options), own);
  const call = (name) => (message) =>
    new Promise((resolve, reject) => {
      client[name](message, (error, answer) => (error ? reject(error) : resolve(answer)));
    });
  return new Promise((resolve, reject) => {
    client.waitForReady(Date.now() + 10_000, (error) => {
      if (error) return reject(error);
      resolve({
        buffer: (_worker, bytes) => new Uint8Array(bytes),
        echo: call('echo'),
        put: call('put'),
        close: async () => client.close(),
      });
    });
  });
}

export const peer = { name: 'grpc-js', fabric: 'unix', serve, connect };
