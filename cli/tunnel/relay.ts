/**
 * Joins a connection of a program with one of the tunnel: what each of them brings and how it ends goes to
 * the other. Used by both ends of `rdma-rpc tunnel`.
 */
import type { Socket as NetSocket } from 'node:net';
import type { Socket } from '../../runtime/socket/socket.ts';

/** What has gone through. */
export interface RelayCounts {
  open: number;
  /** Connections that came, that could not be made, and that ended with an error. */
  accepted: number;
  refused: number;
  broken: number;
  /** Bytes from the programs of this side, and to them. */
  sentBytes: number;
  receivedBytes: number;
}

export const newCounts = (): RelayCounts => ({
  open: 0,
  accepted: 0,
  refused: 0,
  broken: 0,
  sentBytes: 0,
  receivedBytes: 0,
});

type Either = NetSocket | Socket;

/** Ends a connection as a crash of its program would. */
function reset(socket: Either): void {
  if (socket.destroyed) return;
  // A unix socket cannot be reset, and there is nothing to reset before the connection is made.
  if (socket.connecting || socket.remoteAddress === undefined) socket.destroy();
  else socket.resetAndDestroy();
}

function join(from: Either, to: Either, onBytes: (bytes: number) => void): void {
  from.on('data', (bytes: Buffer) => {
    onBytes(bytes.byteLength);
    // A slow reader stops its own writer.
    if (!to.write(bytes)) from.pause();
  });
  to.on('drain', () => from.resume());
  from.on('end', () => to.end());
  from.on('close', () => {
    if (!from.readableEnded || from.errored !== null) reset(to);
  });
}

/**
 * Joins `program` with `tunnel`, which may both still be connecting. `onError` gets the first error of the
 * two. Both must allow half-open connections.
 */
export function relay(
  program: NetSocket,
  tunnel: Socket,
  counts: RelayCounts,
  onError: (error: NodeJS.ErrnoException, wasConnecting: boolean) => void,
): void {
  let failed = false;
  let left = 2;
  ++counts.open;
  ++counts.accepted;
  for (const socket of [program, tunnel]) {
    let connecting = socket.connecting;
    socket.once('connect', () => {
      connecting = false;
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (failed) return;
      failed = true;
      if (connecting) ++counts.refused;
      else ++counts.broken;
      onError(error, connecting);
    });
    socket.once('close', () => {
      if (--left === 0) --counts.open;
    });
  }
  join(program, tunnel, (bytes) => {
    counts.sentBytes += bytes;
  });
  join(tunnel, program, (bytes) => {
    counts.receivedBytes += bytes;
  });
}
