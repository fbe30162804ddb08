/**
 * How TLS is told from frames by its first bytes, and what either side says that meets the other. Used by
 * links and by worker groups.
 */
import { controlFrameBytes } from '../../limits.ts';

/**
 * Whether four bytes, as a frame's length, are the beginning of a TLS record: a handshake of version 3.x. Too
 * long for any frame.
 */
export function isTls(length: number): boolean {
  return (length & 0xffff) === 0x0316 && length > controlFrameBytes;
}

/** What a client is told that comes without. */
export const plainRefused = 'this server takes TLS on host:port addresses only (option tls of the channel)';
/** What is said of a client that comes with it, where there is none. */
export const tlsRefused =
  'the beginning of TLS, and this server has none at this address (option tls of the server)';

/**
 * Of a client, for the log. One that looks at the certificate when the handshake is over, as those of
 * node:tls do, sends no alert.
 */
export const tlsClosed =
  "the connection was closed in the TLS handshake; a client may do that which does not accept this server's certificate";
