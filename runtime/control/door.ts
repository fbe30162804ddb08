/**
 * The way in for connections of the tcp fabric. They come to the address that the user has typed, as sideband connections do, since a proxy, a tunnel
 * or a service passes nothing else on, and are told from those by their first bytes (WIRE, "The tcp fabric"). Used by a server's links.
 */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { loadNative } from '../native.ts';

export const greetingBytes = 40;
/** As a length it would be that of a control frame far beyond all limits. */
export const greetingMagic = 0x706d6452;

/** A handle of libuv has it; in other JS runtimes, and once it is closed, there is none. */
function descriptorOf(duplex: Duplex): number | undefined {
  const fd = (duplex as { _handle?: { fd?: unknown } })._handle?.fd;
  return typeof fd === 'number' && fd >= 0 ? fd : undefined;
}

/** Why clients that come by this connection cannot use tcp; '' when they can. A stream from another thread says so itself. */
export function whyNoDoor(duplex: Duplex): string {
  const { whyNoDoor: told } = duplex as { whyNoDoor?: unknown };
  if (typeof told === 'string') return told;
  if (!(duplex instanceof Socket)) return 'connections reach this server by way of another thread or process';
  if (duplex.remoteAddress === undefined) return 'the server is reached by a unix socket here';
  return descriptorOf(duplex) === undefined ? 'this JS runtime gives no descriptors of sockets' : '';
}

/** Gives a connection that began with `greeting` to the session that it is for. Returns why not, or ''. The caller destroys `duplex`, without a word. */
export function handOver(duplex: Duplex, greeting: Uint8Array): string {
  const fd = descriptorOf(duplex);
  return fd === undefined
    ? 'a connection of the tcp fabric: there is no descriptor of it'
    : loadNative().handOver(fd, greeting);
}
