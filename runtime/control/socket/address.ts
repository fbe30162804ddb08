/**
 * The addresses that users type, `host:port` or `unix:/path`: the place of the sideband socket. Used by
 * server and channel.
 */
import { type AddressInfo, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export type TcpAddress = { readonly kind: 'tcp'; readonly host: string; readonly port: number };
export type Address = TcpAddress | { readonly kind: 'unix'; readonly path: string };

/** sockaddr_un holds 108 bytes with the final zero. */
export const unixPathBytes = 107;

function bad(text: unknown, why: string): TypeError {
  const shown = typeof text === 'string' ? JSON.stringify(text) : typeof text;
  return new TypeError(`address ${shown}: ${why}; use 'host:port', '[ipv6]:port' or 'unix:/path'`);
}

/** Throws a TypeError that says what is wrong with the address. Port 0 is allowed (for listening). */
export function parseAddress(text: string): Address {
  if (typeof text !== 'string') throw bad(text, 'not a string');
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length);
    if (path === '') throw bad(text, 'no path');
    if (path.includes('\0')) throw bad(text, 'a zero byte in the path');
    if (Buffer.byteLength(path) > unixPathBytes)
      throw bad(text, `the path is longer than ${unixPathBytes} bytes`);
    return { kind: 'unix', path };
  }
  const match = /^(?:\[([0-9a-fA-F:.%]+[^\]]*)\]|([^:[\]/]+)):(\d{1,5})$/.exec(text);
  if (match === null) throw bad(text, 'not understood');
  const host = match[1] ?? match[2]!;
  const port = Number(match[3]);
  if (port > 65_535) throw bad(text, 'the port is above 65535');
  return { kind: 'tcp', host, port };
}

export function formatAddress(address: Address): string {
  if (address.kind === 'unix') return `unix:${address.path}`;
  return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
}

/**
 * What a listening socket is bound to, in the form that a client connects to. `asked`: the host that it was
 * to listen on.
 */
export function boundAddress(bound: AddressInfo | string | null, asked = ''): string {
  if (bound === null) throw new Error('the socket is not listening');
  if (typeof bound === 'string') return formatAddress({ kind: 'unix', path: bound });
  // Node leaves the zone out, without which nobody reaches a link-local address.
  const zone = bound.address.includes('%') ? '' : (/%.*$/.exec(asked)?.[0] ?? '');
  return formatAddress({ kind: 'tcp', host: bound.address + zone, port: bound.port });
}

/** Of addresses as sockets have them. */
const isLoopback = (address: string): boolean => address.startsWith('127.') || address === '::1';

/** Without the prefix of IPv4 in IPv6. */
export function unmapped(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/, '');
}

/** The same, and without the zone. */
function plainAddress(address: string | undefined): string | undefined {
  return address === undefined ? undefined : unmapped(address).replace(/%.*$/, '');
}

/**
 * The IP address of the other end of a sideband connection; empty for a unix socket, or one that is closed
 * already.
 */
export function peerAddress(duplex: Duplex): string {
  return plainAddress((duplex as Partial<Socket>).remoteAddress) ?? '';
}

/** Where a sideband connection leads, in numbers; undefined when it is none of TCP, or closed already. */
export function peerPlace(duplex: Duplex): { host: string; port: number } | undefined {
  const { remoteAddress: host, remotePort: port } = duplex as Partial<Socket>;
  return host === undefined || port === undefined ? undefined : { host, port };
}

/**
 * The IP address of this end of a sideband connection; undefined when it says nothing about the network: a
 * unix socket, loopback.
 */
export function ownAddress(duplex: Duplex): string | undefined {
  const address = plainAddress((duplex as Partial<Socket>).localAddress);
  if (address === undefined || isIP(address) === 0) return undefined;
  return isLoopback(address) ? undefined : address;
}
