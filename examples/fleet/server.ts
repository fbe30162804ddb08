/**
 * A server of the fleet, started by main.ts as a process of its own: `server.js NAME`. Sends its address to
 * its parent, answers with its name, and drains on SIGTERM.
 */
import { createServer } from 'rdma-rpc';
import { GreeterDefinition } from '../hello/gen/greeter.rdma.ts';

const [name = 'server'] = process.argv.slice(2);
const server = createServer().add(GreeterDefinition, { sayHello: () => ({ text: name }) });
process.once('SIGTERM', () => {
  void server.shutdown({ graceMs: 5_000 }).then(() => process.exit(0));
});
// The parent has gone, however it ended.
process.once('disconnect', () => process.exit(0));
process.send?.(await server.listen('127.0.0.1:0'));
