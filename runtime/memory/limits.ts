/**
 * Limits of remote memory, each with its reason. (runtime/limits.ts has the central limits.)
 */

const KiB = 1024;
const MiB = 1024 * KiB;

/**
 * Number of messages that each side may have on their way to the other side. It suffices for the
 * notifications of one round trip.
 */
export const memoryReceives = 64;
/**
 * Number of credits that are reserved for messages that return credits, so that the two sides can never wait
 * for each other.
 */
export const reservedCredits = 4;
/**
 * Number of work requests of one side. This number of chunks keeps a device busy, and is small enough for any
 * device.
 */
export const memorySends = 256;
/**
 * Maximum number of bytes of one READ or WRITE. Larger transfers take several requests, so that the
 * operations of a peer take turns and a request is never too long for a device.
 */
export const chunkBytes = 1 * MiB;
/**
 * Number of bytes that one side posts in an iteration of the event loop. On fabrics that copy when a request
 * is posted, this limits how long calls have to wait.
 */
export const iterationBytes = 4 * MiB;
/**
 * Each request counts as at least this number of bytes, so that many small requests also leave room for
 * calls.
 */
export const requestBytesMin = 4 * KiB;
/**
 * Slots of registered memory through which other memory is read and written. They take 1 MiB for each peer
 * that needs them.
 */
export const stagingSlots = { count: 16, bytes: 64 * KiB } as const;
/**
 * Maximum number of waiting operations. Beyond it the caller gets an error, so that memory does not grow
 * without limit.
 */
export const operationsMax = 65_536;
/** Number of exposures to one peer at a time. Each exposure is a registered region. */
export const exposures = { default: 1024, min: 1, max: 1_048_576 } as const;
/**
 * Time in milliseconds in which a peer must finish its operations when memory is revoked. A live peer needs
 * one round trip to do that. A peer that does not answer loses the memory too.
 */
export const revokeMs = { default: 1000, min: 1, max: 60_000 } as const;
/** Milliseconds after which an exposure expires. The maximum is the longest delay of a timer. */
export const expiresMs = { default: undefined, min: 1, max: 2 ** 31 - 1 } as const;
/**
 * Time limit in milliseconds within which both sides connect their queue pairs. It is longer than any fabric
 * needs. For a client it begins with its request, and includes the time that `authorize` takes.
 */
export const memoryConnectMs = 10_000;
