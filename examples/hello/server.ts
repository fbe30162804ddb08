/** The server of the quick start: `node dist/examples/hello/server.js [address]`. */
import { createServer } from 'rdma-rpc';
import { GreeterDefinition } from './gen/greeter.rdma.ts';

const server = createServer();
server.add(GreeterDefinition, {
  sayHello: (request) => ({ text: `Hello, ${request.name}!` }),
});
const address = await server.listen(process.argv[2] ?? '127.0.0.1:50051');
console.log(`listening on ${address}`);
