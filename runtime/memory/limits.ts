/** Limits of remote memory, each with its reason (runtime/limits.ts has the central ones). */

const KiB = 1024;
const MiB = 1024 * KiB;

/** Messages between the two sides that each can have on their way: a round trip's worth of notifications. */
export const memoryReceives = 64;
/**
 * Credits that only messages which return credits may use, so that two sides can never wait for each other.
 */
export const reservedCredits = 4;
/** Work requests of one side: as many chunks as keep a device busy, and few enough for any device. */
export const memorySends = 256;
/**
 * Bytes of one READ or WRITE. Larger transfers take several, so that the operations of a peer take turns and
 * no request is too long for a device.
 */
export const chunkBytes = 1 * MiB;
/**
 * Bytes that one side posts in an iteration of the event loop. On fabrics that copy when a request is posted,
 * this is for how long calls have to wait.
 */
export const iterationBytes = 4 * MiB;
/** A request counts as this number of bytes at least, so that small ones leave room for calls, too. */
export const requestBytesMin = 4 * KiB;
/**
 * Registered memory through which other memory is read and written, in slots; 1 MiB for each peer that needs
 * it.
 */
export const stagingSlots = { count: 16, bytes: 64 * KiB } as const;
/** Operations that wait; past it the caller is told, rather than memory growing. */
export const operationsMax = 65_536;
/** Exposures to one peer at a time: each is a registered region. */
export const exposures = { default: 1024, min: 1, max: 1_048_576 } as const;
/**
 * Time for a peer to finish its operations when memory is taken back. A peer that lives needs a round trip;
 * one that does not answer loses the memory all the same.
 */
export const revokeMs = { default: 1000, min: 1, max: 60_000 } as const;
/** The longest delay of a timer. */
export const expiresMs = { default: undefined, min: 1, max: 2 ** 31 - 1 } as const;
/** Time for both sides to connect their queue pairs: more than any fabric takes. */
export const memoryConnectMs = 10_000;
