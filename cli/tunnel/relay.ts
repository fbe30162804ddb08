/**
 * Joins a connection of a program with a socket of `rdma-rpc/socket`: the bytes and the end of each are
 * passed to the other. The serving end of `rdma-rpc tunnel` uses this file for clients that need no tunnel.
 */
import type { Socket as NetSocket } from 'node:net';
import { readError } from '../../runtime/socket/errors.ts';
import type { Socket } from '../../runtime/socket/socket.ts';
import type { RelayCounts } from './counts.ts';
import { endedByReset, reset } from './program-side.ts';

type Either = NetSocket | Socket;

function join(from: Either, to: Either, onBytes: (bytes: number) => void): void {
  from.on('data', (bytes: Buffer) => {
    onBytes(bytes.byteLength);
    // Pausing here means that a slow reader stops only its own writer.
    if (!to.write(bytes)) from.pause();
  });
  to.on('drain', () => from.resume());
  from.on('end', () => {
    if (endedByReset(from)) from.destroy(readError(undefined));
    else to.end();
  });
  from.on('close', () => {
    if (!from.readableEnded || from.errored !== null) reset(to);
  });
}

/**
 * Joins `program` with `tunnel`. Both must allow half-open connections, and both may still be connecting.
 * `onError` gets the first error of the two sockets.
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
