/**
 * Distinguishes TLS from frames by the first bytes of a connection. It also has the error texts for a side
 * that expected frames and received TLS, and for the opposite case. Used by links and by worker groups.
 */
import { controlFrameBytes } from '../../limits.ts';

/**
 * Returns whether four bytes are the beginning of a TLS record (a handshake of version 3.x). `length` is the
 * value of these bytes when they are read as a frame's length. Frames are always shorter.
 */
export function isTls(length: number): boolean {
  return (length & 0xffff) === 0x0316 && length > controlFrameBytes;
}

/** The text for a client that connects without TLS. */
export const plainRefused = 'this server requires TLS on host:port addresses (option tls of the channel)';
/** The text about a client that uses TLS with a server without TLS. */
export const tlsRefused =
  'a TLS handshake, but this server has no TLS at this address (option tls of the server)';

/**
 * The log text about a client that has closed the connection. Clients that check the certificate after the
 * handshake, such as clients of node:tls, send no alert.
 */
export const tlsClosed =
  "the connection was closed in the TLS handshake, perhaps because the client does not accept this server's certificate";
