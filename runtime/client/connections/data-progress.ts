/**
 * Tells whether the bytes of a data connection still move although nothing has been answered on it. A slow
 * network can hold back the answers to all calls behind one large request. The checks of an address
 * (silence-checks.ts) use this file, on the channel's JS thread.
 */
import type { SessionPath } from '../../native/native.ts';

/**
 * Returns whether bytes have moved between two looks at the connection. Bytes that arrive are always a sign
 * of life. Acknowledged bytes are a sign of life only when bytes of this side were pending at the first look.
 * The reason is a proxy that drops bytes: it acknowledges all bytes at once, including the bytes of the
 * checks themselves. The number of pending bytes is finite, because the peer must return credits and ask for
 * the bytes of large messages. Therefore such a proxy cannot acknowledge bytes for ever. Returns false when
 * the fabric has no such numbers.
 */
export function hasMoved(before: SessionPath | undefined, now: SessionPath | undefined): boolean {
  if (before === undefined || now === undefined) return false;
  return now.received > before.received || (before.pending > 0 && now.acknowledged > before.acknowledged);
}
