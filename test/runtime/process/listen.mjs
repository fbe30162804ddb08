/**
 * Runs as a server process for unix-path.test.ts. The process listens at the address in its argument, prints
 * the result, and runs until it is killed.
 */
import { createServer } from 'rdma-rpc';

const server = createServer();
const result = await server.listen(process.argv[2]).then(
  () => 'listens',
  (error) => error.code ?? error.message,
);
process.send(result);
