/**
 * A server of its own for unix-path.test.ts: listens where its argument says, tells what came of it, and
 * stays until it is killed.
 */
import { createServer } from 'rdma-rpc';

const server = createServer();
const result = await server.listen(process.argv[2]).then(
  () => 'listens',
  (error) => error.code ?? error.message,
);
process.send(result);
