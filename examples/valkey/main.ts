/**
 * Sends a command to a Valkey server over RDMA: `node dist/examples/valkey/main.js DEVICE HOST:PORT COMMAND`.
 * On an RDMA device the address is that of a valkey-server with its RDMA module. On `shm` and `tcp` it is the
 * address at which a peer.ts of another process listens. Without an address a peer in this process answers,
 * by default on `sim`.
 */
import { Redis } from 'iovalkey';
import { dial, meetHere } from '../pingpong/meeting.ts';
import { rdmaConnector } from './connector.ts';
import { openStream } from './end.ts';
import { servePeer } from './peer.ts';

const [device = 'sim', address = '', ...words] = process.argv.slice(2);
const [command = 'ping', ...args] = words;

const Connector = rdmaConnector(async () => {
  if (address !== '') {
    const [host = '', port = ''] = address.split(':');
    const software = ['sim', 'shm', 'tcp'].includes(device);
    return openStream(
      device,
      'client',
      software ? await dial(host, Number(port)) : { host, port: Number(port) },
    );
  }
  const [here, there] = meetHere();
  void openStream(device, 'server', there).then(servePeer);
  return openStream(device, 'client', here);
});
const client = new Redis({ Connector: Connector as never, lazyConnect: true, maxRetriesPerRequest: 0 });
client.on('error', () => undefined); // Each command reports the error itself.
try {
  await client.connect();
  console.log(await client.call(command, ...args));
  await client.quit();
} catch (error) {
  console.error(`error: ${(error as Error).message}`);
  process.exitCode = 1;
  client.disconnect();
}
