// grpc-js with the output of protobufjs's static generator, for bench/start. `client ADDRESS` makes one call,
// and `server ADDRESS` serves until its stdin ends.
import { writeSync } from 'node:fs';
import grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs/minimal.js';

const cpuUs = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};
const importUs = cpuUs();
const tell = () => writeSync(1, `${JSON.stringify({ importUs, doneUs: cpuUs() })}\n`);

const encode = ({ payload, id }) =>
  protobuf.Writer.create().uint32(10).bytes(payload).uint32(16).uint64(id).finish();
const decode = (bytes) => {
  const reader = protobuf.Reader.create(bytes);
  const message = { payload: new Uint8Array(0), id: 0 };
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag >>> 3 === 1) message.payload = reader.bytes();
    else if (tag >>> 3 === 2) message.id = Number(reader.uint64());
    else reader.skipType(tag & 7);
  }
  return message;
};
const service = {
  echo: {
    path: '/bench.v1.Bench/Echo',
    requestStream: false,
    responseStream: false,
    requestSerialize: encode,
    requestDeserialize: decode,
    responseSerialize: encode,
    responseDeserialize: decode,
  },
};
const [, , role, address] = process.argv;
if (role === 'server') {
  const server = new grpc.Server();
  server.addService(service, { echo: (call, callback) => callback(null, call.request) });
  server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error) => {
    if (error) throw error;
    tell();
  });
  process.stdin.on('end', () => process.exit(0)).resume();
} else {
  const Client = grpc.makeGenericClientConstructor(service, 'Bench');
  const client = new Client(address, grpc.credentials.createInsecure());
  const deadline = Date.now() + 30_000;
  client.echo({ payload: new Uint8Array(32), id: 1 }, { deadline }, (error, { id } = {}) => {
    if (error || id !== 1) throw error ?? new Error('not the answer');
    tell();
    process.exit(0);
  });
}
