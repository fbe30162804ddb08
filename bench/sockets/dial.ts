/**
 * Both libraries behind one interface, with the way in which each listens and connects. Both processes use
 * this file.
 */
import * as net from 'node:net';
import type { Duplex } from 'node:stream';
import { configure } from 'rdma-rpc';
import { connect, createServer } from 'rdma-rpc/socket';
import type { Library, SocketScenario } from './scenarios.ts';

/** Room for eight writes of 1 MiB in flight, and for as many that the receiver has. */
const arenaBytes = 128 * 1024 * 1024;

/**
 * Listens on a path, or on any port when `path` is undefined. Resolves to the value that `dial()` expects.
 */
export function listen(
  library: Library,
  { polling, network }: SocketScenario,
  path: string,
  onConnection: (socket: Duplex) => void,
): Promise<string> {
  if (library === 'node:net') {
    const server = net.createServer({ allowHalfOpen: true, noDelay: true }, onConnection);
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      const bound = (): void => {
        const address = server.address();
        resolve(typeof address === 'string' ? path : String(address?.port));
      };
      if (network === 'unix') server.listen(path, bound);
      else server.listen(0, '127.0.0.1', bound);
    });
  }
  configure({ polling, arenaBytes });
  const server = createServer({ allowHalfOpen: true, server: { fabric: fabricOf(network) } }, onConnection);
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(network === 'unix' ? `unix:${path}` : '127.0.0.1:0', () => resolve(server.where ?? ''));
  });
}

const fabricOf = (network: SocketScenario['network']): 'shm' | 'tcp' => (network === 'unix' ? 'shm' : 'tcp');

let configured = false;

/** Connects to the value to which `listen()` has resolved. */
export function dial(library: Library, { polling, network }: SocketScenario, to: string): Duplex {
  if (library === 'node:net')
    return network === 'unix'
      ? net.connect(to)
      : net.connect({ host: '127.0.0.1', port: Number(to), noDelay: true });
  if (!configured) configure({ polling, arenaBytes });
  configured = true;
  return connect(to, { writesStay: library === 'rdma-rpc stays', channel: channelOptions[network] });
}

/** One object for each network, so that all sockets share a session. */
const channelOptions = { unix: { fabric: 'shm' }, tcp: { fabric: 'tcp' } } as const;
