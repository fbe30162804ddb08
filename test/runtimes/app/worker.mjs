/** Runs as the worker of main.mjs. */
import { createServer } from 'rdma-rpc';
import { listenInWorker } from 'rdma-rpc/workers';
import { GreeterDefinition } from './greeter.rdma.js';

listenInWorker(
  createServer().add(GreeterDefinition, {
    sayHello: ({ name }) => ({ text: `Hello from a worker, ${name}!` }),
  }),
);
