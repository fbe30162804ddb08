/**
 * Commands to a Valkey server over RDMA: `node dist/examples/valkey/main.js [device] [HOST:PORT] [COMMAND
 * …]`. The address is that of the program which exchanges the queue pairs' addresses for the server
 * (peer.ts has a small one). Without an address it starts that peer in this process.
 */
import Redis from 'iovalkey';
import { dial, meetHere } from '../pingpong/meeting.ts';
import { rdmaConnector } from './connector.ts';
import { openStream } from './end.ts';
import { servePeer } from './peer.ts';

const [device = 'sim', address = '', ...words] = process.argv.slice(2);
const [command = 'ping', ...args] = words;

const Connector = rdmaConnector(async () => {
  if (address !== '') {
    const [host = '', port = ''] = address.split(':');
    return openStream(device, 'client', await dial(host, Number(port)));
  }
  const [here, there] = meetHere();
  void openStream(device, 'server', there).then(servePeer);
  return openStream(device, 'client', here);
});
const client = new Redis({ Connector: Connector as never, lazyConnect: true, maxRetriesPerRequest: 0 });
client.on('error', () => undefined); // each command reports it
try {
  await client.connect();
  console.log(await client.call(command, ...args));
  await client.quit();
} catch (error) {
  console.error(`error: ${(error as Error).message}`);
  process.exitCode = 1;
  client.disconnect();
}
