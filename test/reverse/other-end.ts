/**
 * Runs the other end of calls from a server to its client, as a separate process for processes.test.ts.
 * `server ADDRESS` calls the first client that serves, and prints the result. `client ADDRESS` serves. The
 * process runs until it is killed.
 */
import { createChannel, createServer } from 'rdma-rpc';
import { peersOf, serveReverse } from 'rdma-rpc/reverse';
import { echoHandlers } from '../runtime/echo-service.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

const [, , what, address = '', fabric = 'shm'] = process.argv;
const options = { fabric: fabric as 'shm' | 'tcp' };
if (what === 'server') {
  const server = createServer(options);
  const peers = peersOf(server);
  peers.on('peer', (peer) => {
    const large = new Uint8Array(4_000_000);
    const echo = peers.client(EchoDefinition, peer);
    for (let i = 0; i < 20; ++i) echo.behave({ text: 'hang', payload: large }).catch(() => undefined);
  });
  process.send?.(await server.listen(address));
} else {
  const reverse = serveReverse(createChannel(address, options));
  reverse.add(EchoDefinition, echoHandlers({ started: 0, aborted: [] }));
  await reverse.ready;
  process.send?.('serves');
}
// The parent process has ended.
process.on('disconnect', () => process.exit());
