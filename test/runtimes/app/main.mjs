/**
 * Runs the application with which bundlers and JS runtimes are tested. The application calls a server of this
 * thread, and then a server in a worker. Its argument is the worker's file. The application uses no top-level
 * await, which a CommonJS bundle cannot have. stage.mjs puts it beside the generated code.
 */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createChannel, createClient, createServer } from 'rdma-rpc';
import { serveWorkers } from 'rdma-rpc/workers';
import { GreeterDefinition } from './greeter.rdma.js';

async function ask(address, name) {
  const channel = createChannel(address);
  const { text } = await createClient(GreeterDefinition, channel).sayHello({ name }, { timeoutMs: 20_000 });
  console.log(text);
  await channel.close();
}

async function main() {
  const socket = (name) => `unix:${join(tmpdir(), `rdma-rpc-app-${process.pid}-${name}.sock`)}`;
  const server = createServer().add(GreeterDefinition, {
    sayHello: ({ name }) => ({ text: `Hello, ${name}!` }),
  });
  await ask(await server.listen(socket('thread')), 'Ada');
  await server.shutdown();
  const options = { address: socket('workers'), workers: 1 };
  const group = await serveWorkers(pathToFileURL(process.argv[2]), options);
  await ask(group.address, 'Grace');
  await group.shutdown();
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
