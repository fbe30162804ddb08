/**
 * Tells whether the bytes of a data connection still move although nothing has been answered on it. A slow
 * network can hold back the answers to all calls behind one large request. Used by the checks of an address
 * (silence-checks.ts), on the channel's JS thread.
 */
import type { SessionPath } from '../../native/native.ts';

/**
 * Returns whether bytes have moved between two looks at the counters of the kernel. Bytes that arrive are
 * always a sign of life. Acknowledged bytes are a sign of life only when bytes of this side were pending at
 * the first look, because a proxy that drops bytes acknowledges all bytes at once, including the bytes of the
 * checks. Such a proxy cannot do this for ever: the amount of pending data is finite, because the peer must
 * return credits and ask for the bytes of large messages. Returns false when the fabric has no such counters.
 */
export function hasMoved(before: SessionPath | undefined, now: SessionPath | undefined): boolean {
  if (before === undefined || now === undefined) return false;
  return now.received > before.received || (before.pending > 0 && now.acknowledged > before.acknowledged);
}
