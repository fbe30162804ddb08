/** Opens both ends of a tunnel within the test's process, and a program behind it. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { newCounts, type RelayCounts } from '../../../cli/tunnel/counts.ts';
import { listeningEnd, servingEnd, type TunnelEnd } from '../../../cli/tunnel/end.ts';

export interface Tunnel {
  readonly counts: { readonly near: RelayCounts; readonly far: RelayCounts };
  readonly errors: string[];
  readonly near: TunnelEnd;
  readonly far: TunnelEnd;
  /** Connects a program's socket to the near end. */
  dial(options?: { allowHalfOpen?: boolean }): Socket;
  close(): Promise<void>;
}

/**
 * A tunnel that is closed resets the connections that are still open. Only the tests of resets check this.
 */
const ignoreResets = (socket: Socket): Socket => socket.on('error', () => undefined);

export function dialTo(address: string, options: { allowHalfOpen?: boolean } = {}): Socket {
  if (address.startsWith('unix:')) return ignoreResets(connect({ path: address.slice(5), ...options }));
  const { hostname, port } = new URL(`tcp://${address}`);
  return ignoreResets(connect({ host: hostname, port: Number(port), ...options }));
}

/** Opens a tunnel to `to`. `listen` is the address of the near end. */
export async function tunnelTo(to: string, listen = '127.0.0.1:0'): Promise<Tunnel> {
  const counts = { near: newCounts(), far: newCounts() };
  const errors: string[] = [];
  const report = (error: NodeJS.ErrnoException): void => void errors.push(error.code ?? error.message);
  const far = await servingEnd('127.0.0.1:0', to, {}, counts.far, report);
  const near = await listeningEnd(listen, far.bound, {}, counts.near, report);
  return {
    counts,
    errors,
    near,
    far,
    dial: (options) => dialTo(near.bound, options),
    close: async () => {
      near.destroy();
      far.destroy();
      await Promise.all([near.drain(), far.drain()]);
    },
  };
}

/** Starts a program that serves `onConnection` on TCP. */
export async function program(
  onConnection: (socket: Socket) => void,
  allowHalfOpen = false,
): Promise<{ readonly address: string; close(): Promise<void> }> {
  const server = createServer({ allowHalfOpen }, (socket) => onConnection(ignoreResets(socket)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    close: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}
