/**
 * Unix sockets whose peers can send bytes and nothing else. Descriptors can come with any byte, and the
 * kernel closes those that nobody takes in the thread that reads: the last close of some lasts as long as
 * their sender likes. The kernel refuses them where it can (Linux 6.16); elsewhere a thread of native code
 * stands between. Used by what listens at and dials unix sockets.
 */
import { Socket } from 'node:net';
import { basename } from 'node:path';
import { getSystemErrorName } from 'node:util';
import { processWarning } from '../../core/warnings.ts';
import { loadNative } from '../../native/native.ts';
import { verifiedOf } from '../peer-identity.ts';
import { vouch } from '../tls/certificate.ts';
import { descriptorOf } from './handoff.ts';

/** Only Node makes a socket of a descriptor, and tells the descriptor of a socket. */
const isNode = !('bun' in process.versions || 'deno' in process.versions);

/**
 * Whether connections that a listener at a unix socket accepts must be relayed(): nothing may be read from
 * them before.
 */
export function mustRelay(): boolean {
  return isNode && !loadNative().refusesRights;
}

/** `path`: where it listens, which nobody knows yet. */
export function guardListener(path: string): void {
  const native = loadNative();
  if (!native.refusesRights || native.guardListener(basename(path))) return;
  // The main process of `node:cluster` has it, for one.
  processWarning(
    'a unix socket of this server is not one of this process: who connects to it can stop the event loop by descriptors (SECURITY.md)',
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

/** What was accepted, by way of native code. Undefined: the system refuses, and the connection is over. */
export function relayed(socket: Socket): Socket | undefined {
  const fd = descriptorOf(socket);
  // What comes out of native code is another socket, whose other end is this process.
  const verified = verifiedOf(socket);
  const end = fd === undefined ? -1 : loadNative().relayBytes(fd);
  // Its connection is a duplicate's by now.
  socket.destroy();
  if (end < 0) return undefined;
  const safe = socketOf(end);
  vouch(safe, verified);
  return safe;
}

/** Undefined: not in this JS runtime, where Node's own way has to do. Throws as Node's way would fail. */
export function dialUnix(path: string): Socket | undefined {
  if (!isNode) return undefined;
  const native = loadNative();
  const fd = native.dialUnix(path, !native.refusesRights);
  if (fd < 0) throw failed(fd, path);
  const socket = socketOf(fd);
  // The other end of one that is relayed is this process, which says nothing of the server.
  if (!native.refusesRights) vouch(socket, { transport: 'unix' });
  return socket;
}
