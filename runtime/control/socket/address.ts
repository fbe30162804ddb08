/**
 * The addresses that users type for the sideband connection: `host:port` or `unix:/path`. Servers and
 * channels use this file.
 */
import { type AddressInfo, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export type TcpAddress = { readonly kind: 'tcp'; readonly host: string; readonly port: number };
export type Address = TcpAddress | { readonly kind: 'unix'; readonly path: string };

/** Limit of a socket path in bytes. A sockaddr_un has room for 108 bytes, including the final zero. */
export const unixPathBytes = 107;

function bad(text: unknown, why: string): TypeError {
  const shown = typeof text === 'string' ? JSON.stringify(text) : typeof text;
  return new TypeError(`address ${shown}: ${why}; use 'host:port', '[ipv6]:port' or 'unix:/path'`);
}

/**
 * Parses an address. Throws a TypeError with the reason when it is invalid. Port 0 is allowed (for
 * listening).
 */
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
 * Returns the address of a listening socket in the form that a client connects to. `asked` is the host that
 * was passed to listen().
 */
export function boundAddress(bound: AddressInfo | string | null, asked = ''): string {
  if (bound === null) throw new Error('the socket is not listening');
  if (typeof bound === 'string') return formatAddress({ kind: 'unix', path: bound });
  // Node omits the zone of the address. A link-local address cannot be reached without its zone.
  const zone = bound.address.includes('%') ? '' : (/%.*$/.exec(asked)?.[0] ?? '');
  return formatAddress({ kind: 'tcp', host: bound.address + zone, port: bound.port });
}

/** Returns whether an address, in the form that sockets report, is a loopback address. */
const isLoopback = (address: string): boolean => address.startsWith('127.') || address === '::1';

/** Returns the address without the prefix of IPv4-mapped IPv6 addresses. */
export function unmapped(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/, '');
}

/** Does what `unmapped` does, and removes the zone. */
function plainAddress(address: string | undefined): string | undefined {
  return address === undefined ? undefined : unmapped(address).replace(/%.*$/, '');
}

/**
 * Returns the IP address of the other end of a sideband connection, or '' for a unix socket or a closed
 * connection.
 */
export function peerAddress(duplex: Duplex): string {
  return plainAddress((duplex as Partial<Socket>).remoteAddress) ?? '';
}

/**
 * Returns the numeric address and port of the other end of a TCP sideband connection, or undefined for other
 * connections and for closed connections.
 */
export function peerEndpoint(duplex: Duplex): { host: string; port: number } | undefined {
  const { remoteAddress: host, remotePort: port } = duplex as Partial<Socket>;
  return host === undefined || port === undefined ? undefined : { host, port };
}

/**
 * Returns the IP address of this end of a sideband connection. Returns undefined for unix sockets and
 * loopback addresses, which say nothing about the network.
 */
export function ownAddress(duplex: Duplex): string | undefined {
  const address = plainAddress((duplex as Partial<Socket>).localAddress);
  if (address === undefined || isIP(address) === 0) return undefined;
  return isLoopback(address) ? undefined : address;
}
