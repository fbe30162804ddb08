/** Opens a sideband connection to a server's address. Used by a channel. */
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fullQueuePauseMs, tcpKeepAliveMs } from '../../limits.ts';
import type { TlsDial } from '../tls/tls-client.ts';
import type { Address, TcpAddress } from './address.ts';
import { dialUnix } from './unix-socket.ts';

/** Opens a connection; gives up when the signal fires. */
export type Dial = (signal: AbortSignal) => Promise<Duplex>;

/**
 * Who may not write to the file of a unix socket, or pass a folder on the way to it, may not connect. Node's
 * own message says only that.
 */
function explained(error: NodeJS.ErrnoException, path: string): NodeJS.ErrnoException {
  if (error.code !== 'EACCES') return error;
  const text = `connect EACCES ${path}: this user may not use the socket; option socket of the server, its mode and gid, lets others`;
  return Object.assign(new Error(text, { cause: error }), { code: error.code });
}

/** As dialUnix(), whose errors are explained. */
function dialledUnix(path: string): Socket | undefined {
  try {
    return dialUnix(path);
  } catch (error) {
    throw explained(error as NodeJS.ErrnoException, path);
  }
}

const paths = new WeakMap<Duplex, string>();

/** Where a connection leads that was dialled as a unix socket; undefined for others. */
export function dialledPath(duplex: Duplex): string | undefined {
  return paths.get(duplex);
}

function opened(address: Address, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    // One that has fired already would not be heard below.
    signal.throwIfAborted();
    const dialled = (socket: Socket): void => {
      // An idle channel does not keep the process alive; calls in flight do
      // (client/connections/keep-alive.ts).
      socket.unref();
      if (address.kind === 'unix') paths.set(socket, address.path);
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

/** What the promise does, unless the signal fires first. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(signal.reason);
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}

async function openedSecure(address: TcpAddress, tls: TlsDial, signal: AbortSignal): Promise<Duplex> {
  // First, since it may be a function of the application: no server waits meanwhile.
  const secure = await unlessAborted(tls.ready(), signal);
  signal.throwIfAborted();
  return secure(address, signal);
}

/** `tls`: for TCP; on a unix socket the kernel says who is there. */
export function socketDial(address: Address, tls?: TlsDial): Dial {
  if (tls === undefined || address.kind === 'unix') return (signal) => opened(address, signal);
  return (signal) => openedSecure(address, tls, signal);
}

/**
 * Tries again, until it is given up, while those who wait to be accepted are too many: of a unix socket the
 * system says so at once, where TCP tries again by itself. So a crowd at the door is no error of a call.
 */
export function patient(dial: Dial): Dial {
  return async (signal) => {
    const { first, max } = fullQueuePauseMs;
    for (let pauseMs: number = first; ; pauseMs = Math.min(2 * pauseMs, max)) {
      try {
        return await dial(signal);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      }
      const chance = 0.5 + Math.random();
      await unlessAborted(sleep(pauseMs * chance, undefined, { ref: false }), signal);
    }
  };
}
