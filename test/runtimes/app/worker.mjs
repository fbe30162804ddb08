/** The worker of main.mjs. */
import { createServer, listenInWorker } from 'rdma-rpc';
import { GreeterDefinition } from './greeter.rdma.js';

listenInWorker(
  createServer().add(GreeterDefinition, {
    sayHello: ({ name }) => ({ text: `Hello from a worker, ${name}!` }),
  }),
);
