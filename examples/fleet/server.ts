/**
 * A server of the fleet, a separate process: `server.js NAME HOST REGISTRY`. It answers with its name, is in
 * the registry while it serves, and drains on SIGTERM. It waits for its parent to connect its namespace.
 */
import { once } from 'node:events';
import { createServer } from 'rdma-rpc';
import { GreeterDefinition } from '../hello/gen/greeter.rdma.ts';
import { enlist } from './registry.ts';

const [name = 'server', host = '127.0.0.1', registry = ''] = process.argv.slice(2);
// The parent has ended, for any reason.
process.once('disconnect', () => process.exit(0));
const connected = once(process, 'message');
process.send?.('running');
await connected;

const server = createServer({ log: () => undefined }).add(GreeterDefinition, {
  sayHello: () => ({ text: name }),
});
process.once('SIGTERM', () => {
  void server.shutdown({ graceMs: 5_000 }).then(() => process.exit(0));
});
const address = await server.listen(`${host}:0`);
await enlist(registry, server, address);
process.send?.(address);
