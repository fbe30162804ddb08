/**
 * Every limit and default of the runtime, each with its reason. Options that a user may set take their
 * default and range from here (core/options.ts checks them); native/session/limits.h is the same file for the
 * native layers.
 */

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

/**
 * Calls in flight per session; the smaller of both sides' wishes. 256 hides a round trip at any rate that JS
 * can reach. The call slot has 12 bits on the wire.
 */
export const inflight = { default: 256, min: 1, max: 4096 } as const;
/**
 * Open streams per session; the smaller of both sides' wishes. More wait in the channel. Each may hold a
 * large message in memory, and takes `slotsPerStream` of the call slots that unary calls leave.
 */
export const streams = { default: 64, min: 0, max: 512 } as const;
/**
 * Call slots per stream: itself, one part in each direction that is always its own, and one more for larger
 * windows.
 */
export const slotsPerStream = 4;
/** Call slots of a session: 12 bits of the call word name one (native/session/limits.h). */
export const callSlots = 4096;
/**
 * Calls that wait in a channel for a call slot, a send slot or the connection. Past it the caller is told,
 * rather than memory growing.
 */
export const queuedCalls = { default: 4096, min: 0, max: 1_000_000 } as const;
/**
 * Parts of a stream on their way or unread, per direction. A part of small messages holds some 8 KiB of them:
 * eight hide a round trip at any rate that JS can reach.
 */
export const streamParts = 8;
/**
 * Most bytes of a part that has several messages, or less where a slot holds less. Longer ones are
 * more that a reader who stops leaves unread.
 */
export const streamPackedBytes = 8 * KiB;
/**
 * Bytes of large messages of a stream on their way or unread, per direction; one message may always go. A
 * slow reader holds no more of the arena than this.
 */
export const streamBytes = 8 * MiB;
/**
 * Parts of a stream that was given up: the server answers them when it learns of that. If it does not for so
 * long, they are given up one by one, and held until it does.
 */
export const partLingerMs = 5_000;
/**
 * Largest message accepted. Generous, since a 4 MiB limit is the first error that gRPC users meet; lengths on
 * the wire have 32 bits.
 */
export const messageBytes = { default: 64 * MiB, min: 1 * KiB, max: 4 * GiB - 1 } as const;

/** Pauses of one attempt while the queue of a unix socket is full; they double. */
export const fullQueuePauseMs = { first: 20, max: 500 } as const;
/** One attempt to connect, handshake included. A peer on the same network answers within milliseconds. */
export const connectTimeoutMs = { default: 5_000, min: 1, max: 600_000 } as const;
/**
 * Pause after a failed attempt to connect: the first, and the longest. They grow by 1.6, with 20 % of chance
 * while they are short. A restarted process is back within a second.
 */
export const backoffMs = { default: 50, min: 1, max: 600_000 } as const;
export const backoffMaxMs = { default: 10_000, min: 1, max: 600_000 } as const;
/**
 * From accepting a socket to its session being ready, on the server. Silence costs a socket for no longer.
 */
export const handshakeTimeoutMs = { default: 5_000, min: 1, max: 600_000 } as const;
/**
 * Connections that the system keeps until this side accepts them (listen(2)); it takes no more than
 * net.core.somaxconn. Past it a client's attempt takes one to several seconds, as its system asks again.
 */
export const listenBacklog = 1_024;
/**
 * Sockets that have said nothing yet, and as many handshakes that are being made. More of those wait for
 * their turn; more of the others push out the oldest.
 */
export const handshakes = { default: 128, min: 1, max: 65_536 } as const;
/**
 * Time for the first frame of a connection, before it may be evicted for others: the longest round trip.
 */
export const handshakeGraceMs = 250;
/** The same for its next words, once it is being served: its process may have a crowd of its own. */
export const handshakeStallMs = 500;
/** A handshake whose peer has been silent for that long leaves its place to one that waits, and goes on. */
export const handshakeYieldMs = 250;
/**
 * How long an address of which a handshake came to nothing is served behind others, and how many such
 * addresses a server remembers.
 */
export const suspectMs = 60_000;
export const suspectsMax = 32_768;
/**
 * Milliseconds between two TLS handshakes that a server begins with such addresses. Each one costs it a
 * signature, up to 1 ms, so they take at most a tenth of its thread.
 */
export const suspectTlsApartMs = 10;
/**
 * So many times `handshakesMax` may be silent within that time, may wait for their turn, and may go on
 * without a place.
 */
export const handshakeQueueFactor = 8;
/**
 * How long calls of a session that is lost wait for the server to say why, when it is not gone itself: its
 * word is on its way then.
 */
export const lastWordsMs = 200;
/**
 * Longest wait for a place; then the client is told when to come again. Less than `connectTimeoutMs`, which
 * goes on meanwhile.
 */
export const handshakeWaitMs = 2_000;
/** The latest appointment. 10,000 clients take some ten seconds. */
export const retryAfterMsMax = 30_000;
/** For an answer of an application's `authorize` that comes later. */
export const authorizeMs = 5_000;
/** Credentials are got anew so long before they expire: they may travel, and clocks differ. */
export const credentialsMarginMs = 30_000;
/** A function that has not given any by then is asked again: those who ask meanwhile share its answer. */
export const credentialsMs = 30_000;
/** Numbers of users and groups; the last one stands for none. */
export const userId = { default: undefined, min: 0, max: 0xffff_fffe } as const;
/** Rights on the file of a unix socket. */
export const socketMode = { default: undefined, min: 0, max: 0o777 } as const;
/**
 * Sessions of one server: each has its own queue pair and receive slab (inflightMax slots). As many as a
 * thread's context holds (native/session/limits.h).
 */
export const sessions = { default: 1024, min: 1, max: 16_384 } as const;
/**
 * Connections of one network address, so that one client that goes wild leaves room for the others. A client
 * process needs one.
 */
export const sessionsPerPeer = { default: 64, min: 1, max: 65_536 } as const;
/** Quotas of an identity; without: none. Rates are of a second, which is also what may come at once. */
export const quotaSessions = { default: undefined, min: 1, max: 65_536 } as const;
export const quotaCallsPerSecond = { default: undefined, min: 1, max: 1_000_000_000 } as const;
export const quotaBytesPerSecond = { default: undefined, min: 1, max: 1024 * GiB } as const;
/** Of the arena, for large requests of one session: the smallest blocks have 4 KiB. */
export const quotaArenaBytes = { default: undefined, min: 64 * KiB, max: 1024 * GiB } as const;
/** Identities without a session whose accounts are kept: coming back brings no new second's worth. */
export const quotaAccountsClosed = 1_024;
/**
 * Asynchronous handlers that run at once in a server: 64 sessions with full windows. What comes on top is
 * turned away before any work is done for it.
 */
export const handlers = { default: 16_384, min: 1, max: 1_000_000 } as const;
/**
 * Limits that a server has for calls. Longer ones than the wire can carry (32 bits of microseconds) would be
 * none.
 */
export const serverTimeoutMs = { default: undefined, min: 1, max: 4_294_967 } as const;
/** Grace of `shutdown()`. */
export const graceMs = { default: 5_000, min: 0, max: 86_400_000 } as const;
/**
 * From telling a client to make no more calls to turning away those that it makes all the same. Longer than
 * any round trip.
 */
export const goawayNoticeMs = 1_000;
/** Age and idle time at which a server lets a client connect anew; without the options: never. */
export const connectionAgeMaxMs = { default: undefined, min: 1, max: 1_000_000_000 } as const;
export const connectionIdleMaxMs = { default: undefined, min: 1, max: 1_000_000_000 } as const;
/** What calls under way get then: longer than most time limits of calls. */
export const connectionAgeGraceMs = { default: 60_000, min: 0, max: 86_400_000 } as const;
/** Ages differ by that share either way, so that clients that came together do not come back together. */
export const connectionAgeJitter = 0.1;
/**
 * How long `close()` waits for the native session to report its end, or a socket for its peer to take the
 * last bytes, before it goes on without.
 */
export const closeTimeoutMs = 2_000;

/** A control frame. A hello is under 1 KiB; a peer cannot make us buffer more than this. */
export const controlFrameBytes = 64 * KiB;
/** Texts in control frames: reasons and identities. */
export const controlTextBytes = 1 * KiB;
/** Address blob of a queue pair (native/fabric/fabric.h). */
export const fabricAddressBytes = 512;
/** Of the proof that a queue pair is its sender's, and of what each side brings to its key without TLS. */
export const bindingProofBytes = 32;
export const bindingSecretBytes = 32;
/** Fabrics named in a hello. */
export const fabricsMax = 16;

/**
 * Receives of a session besides those for calls: for control frames, and room for requests that wait; and
 * bytes in front of each slot (native/session/limits.h).
 */
export const receivesBesides = 20;
export const slotHeadBytes = 64;

/** PATH_MAX. */
export const traceFolderBytes = 4096;
/** Trace files of a thread that are kept, since a peer that makes sessions fail must not fill a disk. */
export const traceFilesMax = 16;
/** Once there are that many: between two files with the same reason. */
export const tracePauseMs = 1_000;
/**
 * So long a context stays open when its last channel or server has closed: whoever opens one for each call
 * finds it there.
 */
export const contextLingerMs = 1_000;
/** How often a context that nobody uses any more looks whether its last lease has come back. */
export const leaseCheckMs = 1_000;

/**
 * Idle time after which TCP looks whether the peer's host is still there. A dead process is noticed at once,
 * without this.
 */
export const tcpKeepAliveMs = 20_000;
/** So long it is not asked again whether an RDMA device has come. */
export const missingDeviceMs = 1_000;
/**
 * Log lines a second: warnings of all channels and servers together, a server's `log` for each peer address.
 * A hostile peer must not fill a disk.
 */
export const logLinesPerSecond = 10;
/** Addresses that have lines of their own within a second; the others share theirs. */
export const logPeersMax = 1_024;

/** Metadata of one message in its wire form. It shares the slot with the message. */
export const metadataBytes = 8 * KiB;
export const metadataEntries = 64;
/** Text of an error response, UTF-8 bytes; the rest is cut off. */
export const errorTextBytes = 1 * KiB;

/** What a send or receive slot holds. 8 KiB: two pages, above which copying costs more than a READ. */
export const slotBytes = { default: 8 * KiB, min: 1 * KiB, max: 64 * KiB } as const;
/**
 * The same on shm where no slotBytes is given. There a slot is not pinned and takes the pages that messages
 * touch, and one SEND costs three quarters of two, which are to be put together. Values of 16 KiB fit, with
 * what is around them. No longer: 272 slots of each session come into use one after the other.
 */
export const shmSlotBytes = 17 * KiB;
/** Send slots of a thread's context, shared by its sessions: four sessions with full windows. */
export const sendSlots = { default: 1024, min: 16, max: 65_536 } as const;
/** Low bits of a session's number, which are its place among those alive. */
export const sessionIndexMask = 0x3fff;
/**
 * A session gets another send slot while it holds no more than so many times what is free; the last one in
 * `reservedSlots` is for those that hold less than their part of them (native/session/limits.h).
 */
export const slotShare = 3;
export const reservedSlots = 16;
/**
 * How long a message waits for arena memory that it must be copied into, as native code does with what it
 * reads.
 */
export const memoryWaitMs = 10_000;
/**
 * Longest part of a call's time that a response which waits for memory leaves for telling the caller; a tenth
 * of that time where that is less.
 */
export const tellingMsMax = 100;
/** Arena for large messages and leases, reserved as it is needed. */
export const arenaBytes = { default: 256 * MiB, min: 4 * MiB, max: 1024 * GiB } as const;
/** Application buffers kept registered between calls: bytes, count, and how long unused. */
export const mrCacheBytes = { default: 256 * MiB, min: 0, max: 1024 * GiB } as const;
export const mrCacheEntriesMax = { default: 1024, min: 0, max: 1_000_000 } as const;
export const mrCacheIdleMs = { default: 10_000, min: 1, max: 86_400_000 } as const;
/**
 * Memory that a session's peer can touch where there are no windows; it grows to that. Messages are copied
 * through it, so a larger one is refused.
 */
export const stagingBytes = { default: undefined, min: 256 * KiB, max: 1024 * GiB } as const;

/**
 * A `bytes` value of at least this size is not copied into a bulk message but sent from where it is. Below, a
 * copy is cheaper than a registration.
 */
export const gatherBytes = 16 * KiB;
/**
 * A message of up to this size with a buffer that none before it had is copied where a device would have to
 * register the buffer: by arithmetic, to pin and unpin its 256 pages and to tell the device of them takes as
 * long as the copy, and most such buffers never come again.
 */
export const newBufferBytes = 1 * MiB;
/**
 * Gather entries of one bulk message; a message with more is copied into one (native/session/limits.h has the
 * same number).
 */
export const gatherEntriesMax = 30;
/** What one gather entry takes in its frame. */
export const gatherEntryBytes = 16;
/**
 * A `bytes` field of at least this size in a bulk message is a view of leased memory; a smaller one is a
 * copy, so that it does not hold the whole block.
 */
export const leaseBytes = 4 * KiB;
/** Answers that an application keeps may hold this share of the arena. Further ones are copied out of it. */
export const keptAnswersShare = 1 / 2;
/**
 * Requests of each method that tell the application when it reads them after their call. One that does so
 * does it in the first or in none.
 */
export const watchedRequests = 8;

/**
 * What a buffer of allocBuffer() has besides the bytes asked for: for what is around a payload that a
 * response brings, its other fields, table and gaps (docs/wire/frames.md §2.4).
 */
export const aroundBytes = 4 * KiB;
/** What a sealed message takes besides: a tag for each chunk (docs/wire/connections.md §1.5). */
export const sealChunkBytes = 64 * KiB;
export const sealTagBytes = 16;

/** Submissions staged before they are published: peers overlap best when they get 8 to 32 at a time. */
export const flushEvery = 16;
/**
 * Resolution of deadlines, and slots of their wheel (a power of two): one turn of the wheel is four seconds.
 */
export const wheelTickMs = 2;
export const wheelSlots = 2048;
/** Deadlines that may run at once in a thread. */
export const deadlinesMax = 1 << 22;
/**
 * Between two garbage collections that look for dropped streams of connect-es while others wait: the
 * shortest, and the longest when they find nothing.
 */
export const collectPauseMs = { first: 100, max: 30_000 } as const;
/**
 * What a message in MessagePack may take in the heap when it is decoded; `messageMaxBytes` is what it may
 * take on the wire.
 */
export const decodedBytesMax = 256 * MiB;
/** Longest delay of a JavaScript timer; a longer one would fire at once. */
export const timerMaxMs = 0x7fff_ffff;
/**
 * Time in ms after the deadline or the abort of a client's call in which its interceptors may still pass on
 * the result. After that the caller gets the error without them.
 */
export const interceptorGraceMs = 100;

/** Requests and responses of each method that are looked at for properties which are no fields. */
export const checkedMessages = 100;
/**
 * Kinds of errors of a method's handler that are shown with their stacks, before the next sum; further ones
 * are counted.
 */
export const handlerErrorKinds = 4;
/** How often those that were only counted are summed up. */
export const handlerErrorSumMs = 60_000;
/** How often refused clients are summed up in a process warning, of a server without `log`. */
export const refusalSumMs = 60_000;
/** Characters of such an error that are shown. */
export const handlerErrorText = 8192;
