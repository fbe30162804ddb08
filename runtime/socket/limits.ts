/** Limits of sockets, each with its reason (runtime/limits.ts has the central ones). */

const KiB = 1024;
const MiB = 1024 * KiB;

/**
 * Bytes of one segment; a longer write travels as several. Almost 1 MiB, so that a copy of it with what is
 * around it fits a block of the arena of that size. A stream has 8 MiB in flight, so eight of these hide a
 * round trip.
 */
export const segmentBytes = 1 * MiB - 4 * KiB;
/** Bytes that a socket gets at a time, as from the system with Node: programs count on being able to stop. */
export const readBytes = 64 * KiB;
/**
 * Sockets of one session: what `streamsMax` of a channel and a server may be at most. Further sockets to the
 * same address open another session.
 */
export const socketsPerSession = 512;
/**
 * How long the end of a destroyed socket keeps its process alive, so that the peer learns of it. A round trip
 * and a busy peer take less.
 */
export const closeHoldMs = 2_000;
/**
 * How long a reset waits for a peer that does not read, before the stream is cancelled, which also drops what
 * the peer has not read.
 */
export const resetLingerMs = 5_000;
/** How long a destroyed socket waits for the peer's end: the default of tcp_fin_timeout (tcp(7)). */
export const finLingerMs = 60_000;
/** How long a channel without sockets stays open for the next one to the same address. */
export const channelLingerMs = 1_000;
