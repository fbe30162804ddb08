/**
 * The sockets between the tunnel and programs: TCP or unix sockets of `node:net`. Both ends use this file.
 */
import {
  connect,
  createServer,
  type ListenOptions,
  type NetConnectOpts,
  type Server,
  Socket,
} from 'node:net';
import { constants } from 'node:os';
import type { Duplex } from 'node:stream';
import { boundAddress, formatAddress, parseAddress } from '../../runtime/control/socket/address.ts';
import { descriptorOf } from '../../runtime/control/socket/handoff.ts';
import { UnixPath } from '../../runtime/control/socket/unix-path.ts';
import { nativeIfLoads } from '../../runtime/native/native.ts';

/**
 * Bytes that each socket of the tunnel may buffer. A large buffer lets a socket read many bytes at once after
 * the event loop was busy. A connection whose readers have all stopped uses four times this number of bytes.
 */
export const highWaterMark = 512 * 1024;

const options = { allowHalfOpen: true, noDelay: true, keepAlive: true, highWaterMark } as const;

/**
 * Handles an error of a server that listens. When the process has no file descriptors left, accept() fails.
 * Open connections must continue then.
 */
export const warn = (error: Error): void => process.emitWarning(error, 'RdmaRpcWarning');

/** Connects to a program at `host:port` or `unix:/path`. Throws a TypeError for anything else. */
export function connectTo(address: string): Socket {
  const parsed = parseAddress(address);
  const to: NetConnectOpts =
    parsed.kind === 'unix' ? { path: parsed.path } : { host: parsed.host, port: parsed.port };
  return connect({ ...options, ...to });
}

export interface Listening {
  readonly server: Server;
  /** The address that programs connect to. */
  readonly bound: string;
  /** Accepts no more programs. Another process may listen at the address then, while connections go on. */
  stop(): void;
}

/**
 * Listens for programs. Rejects when it cannot listen. At a unix path it replaces the socket of a tunnel that
 * was killed, and no other file.
 */
export async function listenOn(address: string, onConnection: (socket: Socket) => void): Promise<Listening> {
  const parsed = parseAddress(address);
  const server = createServer(options, onConnection);
  const listen = (at: ListenOptions): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ ...at, backlog: 1024 }, () => {
        server.off('error', reject);
        server.on('error', warn);
        resolve();
      });
    });
  if (parsed.kind === 'tcp') {
    await listen({ host: parsed.host, port: parsed.port });
    return { server, bound: boundAddress(server.address()), stop: () => void server.close() };
  }
  const taken = await UnixPath.take(parsed.path, (path) => listen({ path }));
  // Remove the path before closing the server, so that a program that finds the path always finds a listening
  // server.
  const stop = (): void => {
    taken.release();
    server.close();
  };
  return { server, bound: formatAddress(parsed), stop };
}

/**
 * Returns whether the connection was reset although its socket has emitted `end`. Node 20 and 22 emit `end`
 * when the reset arrives behind data that has not been read yet. That data may be only a part of the data
 * that the program wanted to send, and must not look complete. Call this function in a listener of `end`.
 */
export function endedByReset(socket: Duplex): boolean {
  const fd = descriptorOf(socket);
  const error = fd === undefined ? 0 : (nativeIfLoads()?.takeSocketError(fd) ?? 0);
  // The kernel records EPIPE when the reset arrives after the end, so that all data has arrived.
  return error !== 0 && error !== constants.errno.EPIPE;
}

/** A socket of `node:net`, or of `rdma-rpc/socket`. */
interface Resettable {
  readonly connecting: boolean;
  readonly destroyed: boolean;
  readonly remoteAddress?: string | undefined;
  destroy(): unknown;
  resetAndDestroy(): unknown;
}

/**
 * Returns whether a shutdown is in progress, which begins when all data has been written and is over in the
 * next turn of the event loop. Until then libuv refuses a reset with EINVAL, and Node then leaves the
 * connection open for ever.
 */
const isShuttingDown = ({ writableEnded, writableFinished, writableLength }: Socket): boolean =>
  writableEnded && !writableFinished && writableLength === 0;

/** Resets a connection, as the system does when the program on the other side crashes. */
export function reset(socket: Resettable): void {
  if (socket.destroyed) return;
  // Neither a unix socket nor a socket that is still connecting can be reset.
  if (socket.connecting || socket.remoteAddress === undefined) return void socket.destroy();
  if (socket instanceof Socket && isShuttingDown(socket)) socket.once('finish', () => reset(socket));
  else socket.resetAndDestroy();
}
