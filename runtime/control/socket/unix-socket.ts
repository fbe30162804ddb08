/**
 * Unix sockets over which peers can send only bytes. Over an ordinary unix socket, a peer can send
 * descriptors with any byte. The kernel closes unclaimed descriptors in the thread that reads, and for some
 * kinds of descriptors the sender decides how long this takes. Linux 6.16 and later can refuse descriptors;
 * on older kernels a native thread reads for the socket. The code that listens at and dials unix sockets uses
 * this file.
 */
import { Socket } from 'node:net';
import { basename } from 'node:path';
import { getSystemErrorName } from 'node:util';
import { processWarning } from '../../core/warnings.ts';
import { loadNative } from '../../native/native.ts';
import { verifiedOf } from '../peer-identity.ts';
import { vouch } from '../tls/certificate.ts';
import { descriptorOf } from './handoff.ts';

/** Only Node can create a socket from a descriptor and give access to the descriptor of a socket. */
const isNode = !('bun' in process.versions || 'deno' in process.versions);

/**
 * Returns whether accepted connections of a unix socket must be passed to relayed(). The caller must not read
 * from such a connection itself.
 */
export function mustRelay(): boolean {
  return isNode && !loadNative().refusesRights;
}

/** Makes the socket that listens at `path` refuse descriptors. Clients must not know the path yet. */
export function guardListener(path: string): void {
  const native = loadNative();
  if (!native.refusesRights || native.guardListener(basename(path))) return;
  // For example, the socket may belong to the main process of `node:cluster`.
  processWarning(
    'a unix socket of this server belongs to another process: a client that sends file descriptors on it can block the event loop (SECURITY.md)',
  );
}

function failed(errno: number, path: string): NodeJS.ErrnoException {
  const code = getSystemErrorName(errno);
  return Object.assign(new Error(`connect ${code} ${path}`), {
    code,
    errno,
    syscall: 'connect',
    address: path,
  });
}

const socketOf = (fd: number): Socket => new Socket({ fd, readable: true, writable: true });

/**
 * Puts the native relay thread between an accepted connection and this process. Returns the socket to use
 * instead of `socket`, or undefined when the system refuses the relay; the connection is closed then.
 */
export function relayed(socket: Socket): Socket | undefined {
  const fd = descriptorOf(socket);
  // The peer's identity is kept, because the peer of the relayed socket is this process itself.
  const verified = verifiedOf(socket);
  const end = fd === undefined ? -1 : loadNative().relayBytes(fd);
  // This socket is closed, because the relay has a duplicate of the connection.
  socket.destroy();
  if (end < 0) return undefined;
  const safe = socketOf(end);
  vouch(safe, verified);
  return safe;
}

/**
 * Dials a unix socket without receiving descriptors. Returns undefined in JS runtimes that must use Node's
 * own API instead. Throws the errors that Node's API would report.
 */
export function dialUnix(path: string): Socket | undefined {
  if (!isNode) return undefined;
  const native = loadNative();
  const fd = native.dialUnix(path, !native.refusesRights);
  if (fd < 0) throw failed(fd, path);
  const socket = socketOf(fd);
  // The other end of a relayed socket is this process, so the kernel cannot tell who the server is.
  if (!native.refusesRights) vouch(socket, { transport: 'unix' });
  return socket;
}
