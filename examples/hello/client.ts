/** The client of the quick start: `node dist/examples/hello/client.js [address]`. Start the server first. */
import { createChannel, createClient } from 'rdma-rpc';
import { GreeterDefinition } from './gen/greeter.rdma.ts';

const channel = createChannel(process.argv[2] ?? '127.0.0.1:50051');
const greeter = createClient(GreeterDefinition, channel);
const reply = await greeter.sayHello({ name: 'Ada' }, { timeoutMs: 1000 });
console.log(reply.text);
await channel.close();
