/** Opens a sideband connection to a server's address. A channel uses this file. */
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fullQueuePauseMs, tcpKeepAliveMs } from '../../limits.ts';
import type { TlsDial } from '../tls/tls-client.ts';
import type { Address, TcpAddress } from './address.ts';
import { dialUnix } from './unix-socket.ts';

/**
 * Opens a connection. The signal aborts the attempt. `onConnected` is called when the socket is connected,
 * before TLS.
 */
export type Dial = (signal: AbortSignal, onConnected?: () => void) => Promise<Duplex>;

/**
 * Returns Node's error with the reason why the connection is denied. Connecting needs write permission for
 * the socket file and search permission for the folders above it.
 */
function explained(error: NodeJS.ErrnoException, path: string): NodeJS.ErrnoException {
  if (error.code !== 'EACCES') return error;
  const text = `connect EACCES ${path}: this user may not use the socket; option socket of the server, its mode and gid, lets others`;
  return Object.assign(new Error(text, { cause: error }), { code: error.code });
}

/** Calls dialUnix() and explains its errors. */
function dialledUnix(path: string): Socket | undefined {
  try {
    return dialUnix(path);
  } catch (error) {
    throw explained(error as NodeJS.ErrnoException, path);
  }
}

const paths = new WeakMap<Duplex, string>();

/** Returns the path of a connection that was dialled as a unix socket, or undefined for other connections. */
export function dialledPath(duplex: Duplex): string | undefined {
  return paths.get(duplex);
}

function opened(address: Address, signal: AbortSignal, onConnected?: () => void): Promise<Socket> {
  return new Promise((resolve, reject) => {
    // A signal that is already aborted fires no event.
    signal.throwIfAborted();
    const dialled = (socket: Socket): void => {
      // An idle channel does not keep the process alive. Calls in flight keep it alive
      // (client/connections/keep-alive.ts).
      socket.unref();
      if (address.kind === 'unix') paths.set(socket, address.path);
      onConnected?.();
      resolve(socket);
    };
    const ready = address.kind === 'unix' ? dialledUnix(address.path) : undefined;
    if (ready !== undefined) return dialled(ready);
    const socket: Socket =
      address.kind === 'unix'
        ? connect({ path: address.path })
        : connect({
            host: address.host,
            port: address.port,
            noDelay: true,
            keepAlive: true,
            keepAliveInitialDelay: tcpKeepAliveMs,
          });
    const giveUp = (): void => {
      socket.destroy();
      reject(signal.reason);
    };
    signal.addEventListener('abort', giveUp, { once: true });
    const failed = (error: Error): void =>
      reject(address.kind === 'unix' ? explained(error, address.path) : error);
    socket.once('error', failed);
    socket.once('connect', () => {
      signal.removeEventListener('abort', giveUp);
      socket.off('error', failed);
      dialled(socket);
    });
  });
}

/** Settles as `promise` does, or rejects with the signal's reason when the signal is aborted first. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(signal.reason);
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}

async function openedSecure(
  address: TcpAddress,
  tls: TlsDial,
  signal: AbortSignal,
  onConnected?: () => void,
): Promise<Duplex> {
  // TLS is prepared before dialling, because the preparation may call a function of the application, and the
  // server must not wait for that function.
  const secure = await unlessAborted(tls.ready(), signal);
  signal.throwIfAborted();
  return secure(address, signal, onConnected);
}

/**
 * Returns the dial function of an address. `tls` is used for TCP only, because the kernel identifies the peer
 * of a unix socket.
 */
export function socketDial(address: Address, tls?: TlsDial): Dial {
  if (tls === undefined || address.kind === 'unix')
    return (signal, onConnected) => opened(address, signal, onConnected);
  return (signal, onConnected) => openedSecure(address, tls, signal, onConnected);
}

/**
 * Repeats attempts while the listen queue of a unix socket is full, until the signal aborts them. For a unix
 * socket, the system reports a full queue at once, whereas TCP retries by itself. Because of the repetition,
 * an overloaded listener does not make calls fail.
 */
export function patient(dial: Dial): Dial {
  return async (signal, onConnected) => {
    const { first, max } = fullQueuePauseMs;
    for (let pauseMs: number = first; ; pauseMs = Math.min(2 * pauseMs, max)) {
      try {
        return await dial(signal, onConnected);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      }
      const chance = 0.5 + Math.random();
      await unlessAborted(sleep(pauseMs * chance, undefined, { ref: false }), signal);
    }
  };
}
