/**
 * Converts addresses between the form of `node:net` and that of this package.
 */
import { type AddressInfo, isIPv6 } from 'node:net';
import { formatAddress, parseAddress, unmapped } from '../control/socket/address.ts';

/** An address to which a socket connects or on which a server listens. */
export type SocketAddress =
  | string
  | { readonly port: number; readonly host?: string }
  | { readonly path: string };

/** Returns the address in the form of channels and servers: `host:port` or `unix:/path`. */
export function addressText(address: SocketAddress, defaultHost: string): string {
  if (typeof address === 'string') return address;
  if ('path' in address) return `unix:${address.path}`;
  return formatAddress({ kind: 'tcp', host: address.host ?? defaultHost, port: address.port });
}

/**
 * The address of one end of a connection; all fields are undefined for unix sockets and in-process
 * connections.
 */
export interface Endpoint {
  readonly address: string | undefined;
  readonly port: number | undefined;
  readonly family: 'IPv4' | 'IPv6' | undefined;
}

export const noEndpoint: Endpoint = Object.freeze({ address: undefined, port: undefined, family: undefined });

/** Returns the end that a text such as `127.0.0.1:5000` describes, or `noEndpoint` for any other text. */
export function endpointOf(text: string): Endpoint {
  try {
    const parsed = parseAddress(text);
    if (parsed.kind === 'unix') return noEndpoint;
    const address = unmapped(parsed.host);
    return { address, port: parsed.port, family: isIPv6(address) ? 'IPv6' : 'IPv4' };
  } catch {
    return noEndpoint;
  }
}

/** Returns the result of `address()` for a server on this address, which is a path for a unix socket. */
export function addressInfo(text: string): AddressInfo | string {
  const parsed = parseAddress(text);
  if (parsed.kind === 'unix') return parsed.path;
  return { address: parsed.host, port: parsed.port, family: isIPv6(parsed.host) ? 'IPv6' : 'IPv4' };
}
