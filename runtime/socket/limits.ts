/** Limits of sockets, each with its reason (runtime/limits.ts has the central limits). */

const KiB = 1024;
const MiB = 1024 * KiB;

/**
 * Most bytes of one segment; a longer write is sent as several segments. A write of 1 MiB is one segment,
 * because many programs write pieces of that size. With its header, a copied segment needs a little more than
 * 1 MiB, so it takes a block of the arena's next size, 1.25 MiB. A stream has 8 MiB in flight, so several
 * segments hide a round trip.
 */
export const segmentBytes = 1.25 * MiB - 4 * KiB;
/**
 * Most bytes that a socket gets in one `data` event, as with Node's own sockets. Programs rely on being able
 * to stop reading after each event.
 */
export const readBytes = 64 * KiB;
/**
 * Number of sockets of one session, which is the largest value of `streamsMax` for a channel and a server.
 * Further sockets to the same address open another session.
 */
export const socketsPerSession = 512;
/**
 * Time for which the end of a destroyed socket keeps its process alive, so that the peer learns of the end. A
 * round trip to a busy peer takes less.
 */
export const closeHoldMs = 2_000;
/**
 * Time for which a reset waits for a peer that does not read. After it the stream is cancelled, which also
 * drops data that the peer has not read.
 */
export const resetLingerMs = 5_000;
/**
 * Time for which a destroyed socket waits for the peer's end; the same as the default of tcp_fin_timeout
 * (tcp(7)).
 */
export const finLingerMs = 60_000;
/** Time for which a channel without sockets stays open for the next socket to the same address. */
export const channelLingerMs = 1_000;
