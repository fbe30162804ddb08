/**
 * Tells TLS from frames by the first bytes, and has the error texts for a side that expected the other one.
 * Used by links and by worker groups.
 */
import { controlFrameBytes } from '../../limits.ts';

/**
 * Returns whether four bytes, read as a frame's length, are the beginning of a TLS record: a handshake of
 * version 3.x. No frame is that long.
 */
export function isTls(length: number): boolean {
  return (length & 0xffff) === 0x0316 && length > controlFrameBytes;
}

/** The text for a client that connects without TLS. */
export const plainRefused = 'this server takes TLS on host:port addresses only (option tls of the channel)';
/** The text about a client that uses TLS with a server that does not. */
export const tlsRefused =
  'a TLS handshake, but this server has no TLS at this address (option tls of the server)';

/**
 * The log text about a client that has closed the connection. Clients that check the certificate after the
 * handshake, as those of node:tls do, send no alert.
 */
export const tlsClosed =
  "the connection was closed in the TLS handshake, perhaps because the client does not accept this server's certificate";
