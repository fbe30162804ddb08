// Streams of @grpc/grpc-js with protobufjs, over a unix socket, with the events and the back-pressure of
// grpc-js's own streams. Message limits are lifted; all other settings have their defaults.
import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import protobuf from 'protobufjs';

const root = await new protobuf.Root().load(
  fileURLToPath(new URL('../stream/stream.proto', import.meta.url)),
);
const type = (name) => {
  const message = root.lookupType(`bench.stream.v1.${name}`);
  return [(value) => message.encode(value).finish(), (bytes) => message.decode(bytes)];
};
const method = (name, request, requestStream, response, responseStream) => ({
  path: `/bench.stream.v1.Streams/${name}`,
  requestStream,
  responseStream,
  requestSerialize: request[0],
  requestDeserialize: request[1],
  responseSerialize: response[0],
  responseDeserialize: response[1],
});
const [Ask, Item, Sum] = [type('Ask'), type('Item'), type('Sum')];
const service = {
  download: method('Download', Ask, false, Item, true),
  upload: method('Upload', Item, true, Sum, false),
  chat: method('Chat', Item, true, Item, true),
};
const options = { 'grpc.max_receive_message_length': -1, 'grpc.max_send_message_length': -1 };

const handlers = {
  download(call) {
    const item = { payload: new Uint8Array(call.request.bytes).fill(7) };
    const write = () => {
      while (!call.cancelled && call.write(item));
    };
    call.on('drain', write);
    call.on('cancelled', () => call.off('drain', write));
    write();
  },
  upload(call, callback) {
    let items = 0;
    call.on('data', () => {
      ++items;
    });
    call.on('end', () => callback(null, { items }));
  },
  chat(call) {
    call.on('data', (item) => call.write(item));
    call.on('end', () => call.end());
  },
};

function serve(socket) {
  const server = new grpc.Server(options);
  server.addService(service, handlers);
  return new Promise((resolve, reject) => {
    server.bindAsync(`unix:${socket}`, grpc.ServerCredentials.createInsecure(), (error) => {
      if (error) return reject(error);
      resolve({ close: async () => server.forceShutdown() });
    });
  });
}

/** Settles at the end of a call, also when the caller itself has ended it. */
const over = (call) =>
  new Promise((resolve, reject) => {
    call.on('end', resolve);
    call.on('error', (error) => (error.code === grpc.status.CANCELLED ? resolve() : reject(error)));
  });

function clientOf(client) {
  return {
    buffer: (bytes) => new Uint8Array(bytes),
    download(bytes, onItem) {
      const call = client.download({ bytes });
      let enough = false;
      call.on('data', ({ payload }) => {
        if (enough) return;
        enough = onItem(payload);
        if (enough) call.cancel();
      });
      return over(call);
    },
    upload(next) {
      return new Promise((resolve, reject) => {
        const call = client.upload((error, sum) => (error ? reject(error) : resolve(Number(sum.items))));
        const write = () => {
          for (let payload = next(); payload !== undefined; payload = next()) {
            if (!call.write({ payload })) return;
          }
          call.off('drain', write);
          call.end();
        };
        call.on('drain', write);
        write();
      });
    },
    chat(next, onItem) {
      const call = client.chat();
      const ask = () => {
        const payload = next();
        if (payload === undefined) call.end();
        else call.write({ payload });
      };
      call.on('data', ({ payload }) => {
        onItem(payload);
        ask();
      });
      ask();
      return over(call);
    },
    close: async () => client.close(),
  };
}

function connect(socket) {
  const Client = grpc.makeGenericClientConstructor(service, 'Streams');
  const client = new Client(`unix:${socket}`, grpc.credentials.createInsecure(), options);
  return new Promise((resolve, reject) => {
    client.waitForReady(Date.now() + 10_000, (error) => (error ? reject(error) : resolve(clientOf(client))));
  });
}

export const peer = { name: 'grpc-js', fabric: 'unix', serve, connect };
