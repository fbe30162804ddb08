/**
 * Every limit and default of the runtime, each with its reason. Options that users may set take their default
 * and range from here (core/options.ts checks them). native/session/limits.h has the limits of the native
 * layers.
 */

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

/**
 * Calls in flight per session; the smaller value of both sides applies. 256 hide a round trip at any rate
 * that JS can reach. A call slot has 12 bits on the wire.
 */
export const inflight = { default: 256, min: 1, max: 4096 } as const;
/**
 * Open streams per session; the smaller value of both sides applies. Further ones wait in the channel. Each
 * may have a large message in memory, and takes `slotsPerStream` of the call slots that unary calls leave.
 */
export const streams = { default: 64, min: 0, max: 512 } as const;
/**
 * Call slots per stream: one for the stream, one for a part in each direction, and one more for larger
 * windows.
 */
export const slotsPerStream = 4;
/** Call slots of a session: 12 bits of the call word name one (native/session/limits.h). */
export const callSlots = 4096;
/**
 * Calls that wait in a channel for a call slot, a send slot or the connection. Further calls fail, so that
 * memory does not grow without a limit.
 */
export const queuedCalls = { default: 4096, min: 0, max: 1_000_000 } as const;
/**
 * Parts of a stream in flight or unread, per direction. A part of small messages has some 8 KiB, and eight
 * hide a round trip at any rate that JS can reach.
 */
export const streamParts = 8;
/**
 * Maximum bytes of a part with several messages; less where a slot is smaller. With longer parts, more would
 * be left unread when a reader stops.
 */
export const streamPackedBytes = 8 * KiB;
/**
 * Bytes of large messages of a stream in flight or unread, per direction; a single message may always be
 * sent. A slow reader keeps no more of the arena in use.
 */
export const streamBytes = 8 * MiB;
/**
 * For a cancelled stream: time for the server to answer its parts. Parts that are unanswered after it are
 * cancelled one by one, and stay pending release until the server answers.
 */
export const partLingerMs = 5_000;
/**
 * Largest accepted message. The default is generous, since a limit of 4 MiB is the first error that gRPC
 * users meet. Lengths on the wire have 32 bits.
 */
export const messageBytes = { default: 64 * MiB, min: 1 * KiB, max: 4 * GiB - 1 } as const;

/**
 * Pauses of an attempt to connect while the queue of a unix socket is full; each is twice as long as the one
 * before.
 */
export const fullQueuePauseMs = { first: 20, max: 500 } as const;
/**
 * Time limit of one attempt to connect, with its handshake. A peer on the same network answers within
 * milliseconds.
 */
export const connectTimeoutMs = { default: 5_000, min: 1, max: 600_000 } as const;
/**
 * The first and the longest pause after a failed attempt to connect. Each is 1.6 times as long as the one
 * before, and short ones vary randomly by 20 %. A restarted process is back within a second.
 */
export const backoffMs = { default: 50, min: 1, max: 600_000 } as const;
export const backoffMaxMs = { default: 10_000, min: 1, max: 600_000 } as const;
/**
 * Server: time limit from accepting a socket until its session is ready. A silent peer occupies a socket no
 * longer.
 */
export const handshakeTimeoutMs = { default: 5_000, min: 1, max: 600_000 } as const;
/**
 * Connections that the system queues until this side accepts them (listen(2)); at most net.core.somaxconn.
 * When the queue is full, a client's attempt takes one to several seconds, since its system must retry.
 */
export const listenBacklog = 1_024;
/**
 * Maximum number of silent sockets, and of handshakes in progress. Further handshakes wait in a queue;
 * further silent sockets evict the oldest.
 */
export const handshakes = { default: 128, min: 1, max: 65_536 } as const;
/** Time for the first frame of a connection before it may be evicted; the longest round trip. */
export const handshakeGraceMs = 250;
/**
 * Time for the next frame of a handshake in progress before it may be evicted; its process may be overloaded,
 * too.
 */
export const handshakeStallMs = 500;
/**
 * A handshake whose peer is silent for this time loses its position to a waiting one, and continues without.
 */
export const handshakeYieldMs = 250;
/**
 * After a failed handshake, how long the address ranks behind others; and how many such addresses a server
 * remembers.
 */
export const suspectMs = 60_000;
export const suspectsMax = 32_768;
/**
 * Milliseconds between two TLS handshakes that a server begins with such addresses. Each costs the server a
 * signature, up to 1 ms, so they take at most a tenth of its thread.
 */
export const suspectTlsApartMs = 10;
/**
 * Up to this many times `handshakesMax` connections may be silent, may wait in the queue, and may continue
 * without a position.
 */
export const handshakeQueueFactor = 8;
/**
 * How long calls of a lost session wait for the server's reason, when the server itself has not gone: then
 * the reason is on its way.
 */
export const lastWordsMs = 200;
/**
 * Longest wait for a position; a client that would wait longer is told when to retry. Shorter than
 * `connectTimeoutMs`, which includes the wait.
 */
export const handshakeWaitMs = 2_000;
/** The latest retry time. 10,000 clients take some ten seconds. */
export const retryAfterMsMax = 30_000;
/** Time limit for an application's `authorize` that returns a promise. */
export const authorizeMs = 5_000;
/** Credentials are renewed this long before they expire, since they may be in flight and clocks differ. */
export const credentialsMarginMs = 30_000;
/**
 * A credentials function that has not answered within this time is called again. Calls that wait share one
 * answer.
 */
export const credentialsMs = 30_000;
/** Ids of users and groups; the largest one means none. */
export const userId = { default: undefined, min: 0, max: 0xffff_fffe } as const;
/** The permissions of a unix socket's file. */
export const socketMode = { default: undefined, min: 0, max: 0o777 } as const;
/**
 * Sessions of one server. Each has its own queue pair and receives (inflightMax slots). The maximum is that
 * of a thread's context (native/session/limits.h).
 */
export const sessions = { default: 1024, min: 1, max: 16_384 } as const;
/**
 * Connections of one network address, so that one faulty client leaves room for others. A client process
 * needs one.
 */
export const sessionsPerPeer = { default: 64, min: 1, max: 65_536 } as const;
/**
 * Quotas of an identity; none by default. Rates are per second, and the amount of one second may be used at
 * once.
 */
export const quotaSessions = { default: undefined, min: 1, max: 65_536 } as const;
export const quotaCallsPerSecond = { default: undefined, min: 1, max: 1_000_000_000 } as const;
export const quotaBytesPerSecond = { default: undefined, min: 1, max: 1024 * GiB } as const;
/** Arena memory for large requests of one session; the smallest blocks have 4 KiB. */
export const quotaArenaBytes = { default: undefined, min: 64 * KiB, max: 1024 * GiB } as const;
/** Of memory that is exposed to an identity, over all of its sessions. */
export const quotaExposedBytes = { default: undefined, min: 1, max: 1024 * GiB } as const;
/** Identities without a session whose accounts are kept: coming back brings no new second's worth. */
export const quotaAccountsClosed = 1_024;
/**
 * Asynchronous handlers that run at the same time in a server: 64 sessions with full windows. Further
 * requests are rejected before any work is done for them.
 */
export const handlers = { default: 16_384, min: 1, max: 1_000_000 } as const;
/**
 * A server's time limits for calls. The maximum is the longest time that the wire can carry (32 bits of
 * microseconds).
 */
export const serverTimeoutMs = { default: undefined, min: 1, max: 4_294_967 } as const;
/** Grace period of `shutdown()`. */
export const graceMs = { default: 5_000, min: 0, max: 86_400_000 } as const;
/**
 * How long a shutdown waits for its listeners before clients are told, at most. A registry that answers takes
 * milliseconds; one that does not must not use up the grace period of an orchestrator.
 */
export const departureMs = 1_000;
/**
 * Time from asking a client to make no more calls until further calls are rejected. Longer than any round
 * trip.
 */
export const goawayNoticeMs = 1_000;
/** Age and idle time after which a server lets a client connect again; never by default. */
export const connectionAgeMaxMs = { default: undefined, min: 1, max: 1_000_000_000 } as const;
export const connectionIdleMaxMs = { default: undefined, min: 1, max: 1_000_000_000 } as const;
/** Grace period of calls under way then; longer than most time limits of calls. */
export const connectionAgeGraceMs = { default: 60_000, min: 0, max: 86_400_000 } as const;
/**
 * Ages vary by this share in both directions, so that clients that connected together do not reconnect
 * together.
 */
export const connectionAgeJitter = 0.1;
/** How long `close()` waits for the native session to end, or for a socket's peer to read the last bytes. */
export const closeTimeoutMs = 2_000;

/** Maximum size of a control frame; a peer cannot make this side buffer more. A hello has less than 1 KiB. */
export const controlFrameBytes = 64 * KiB;
/** Maximum length of texts in control frames, such as reasons and identities. */
export const controlTextBytes = 1 * KiB;
/** Maximum size of a queue pair's address blob (native/fabric/fabric.h). */
export const fabricAddressBytes = 512;
/**
 * Sizes of the proof that a queue pair belongs to its sender, and of each side's share of the key without
 * TLS.
 */
export const bindingProofBytes = 32;
export const bindingSecretBytes = 32;
/** Names a side in handles of remote memory: random, so that a handle of another connection is noticed. */
export const exposerBytes = 8;
/** Fabrics named in a hello. */
export const fabricsMax = 16;

/**
 * Receives of a session in addition to those for calls, for control frames and for requests that wait; and
 * the bytes before each slot (native/session/limits.h).
 */
export const receivesBesides = 20;
export const slotHeadBytes = 64;

/** The maximum length of a path (PATH_MAX). */
export const traceFolderBytes = 4096;
/** Number of trace files of a thread that are kept: a peer that makes sessions fail must not fill a disk. */
export const traceFilesMax = 16;
/** Once this number is reached, the pause between two files with the same reason. */
export const tracePauseMs = 1_000;
/**
 * How long a context stays open after its last channel or server has closed, so that a program that opens a
 * channel for each call reuses it.
 */
export const contextLingerMs = 1_000;
/** How often an unused context checks whether its last lease has been released. */
export const leaseCheckMs = 1_000;

/**
 * Idle time after which TCP probes the peer's host. The end of a process is noticed at once, without a probe.
 */
export const tcpKeepAliveMs = 20_000;
/** After a device was not found, no further check is made for this time. */
export const missingDeviceMs = 1_000;
/**
 * Log lines per second, for the warnings of all channels and servers together, and for a server's `log` per
 * peer address. A hostile peer must not fill a disk.
 */
export const logLinesPerSecond = 10;
/** Number of addresses with lines of their own within a second; further ones share a limit. */
export const logPeersMax = 1_024;

/** Maximum metadata of one message in its wire form, which shares the slot with the message. */
export const metadataBytes = 8 * KiB;
export const metadataEntries = 64;
/** Maximum text of an error response in UTF-8 bytes; longer ones are cut. */
export const errorTextBytes = 1 * KiB;

/** Size of a send or receive slot. 8 KiB are two pages; copying more costs more than a READ. */
export const slotBytes = { default: 8 * KiB, min: 1 * KiB, max: 64 * KiB } as const;
/**
 * Size of a slot on shm, unless slotBytes is set. Slots of shm are not pinned, and take only pages that
 * messages touch. One SEND costs three quarters of two SENDs whose segments must be joined. Messages with
 * values of 16 KiB fit. They are not larger, since the 272 slots of a session are used in turn.
 */
export const shmSlotBytes = 17 * KiB;
/** Send slots of a thread's context, which its sessions share: enough for four sessions with full windows. */
export const sendSlots = { default: 1024, min: 16, max: 65_536 } as const;
/** The low bits of a session number: its index among the live sessions. */
export const sessionIndexMask = 0x3fff;
/**
 * A session gets another send slot while it has at most this many times the number of free slots. The last
 * `reservedSlots` are for sessions that have less than their share of them (native/session/limits.h).
 */
export const slotShare = 3;
export const reservedSlots = 16;
/** How long a message waits for arena memory into which it must be copied; the same as in native code. */
export const memoryWaitMs = 10_000;
/**
 * A response waits for memory until this long before the call's deadline, or a tenth of the call's time if
 * that is shorter, so that the caller still gets the error.
 */
export const tellingMsMax = 100;
/** Arena for large messages and leases; it grows as needed. */
export const arenaBytes = { default: 256 * MiB, min: 4 * MiB, max: 1024 * GiB } as const;
/** Application buffers that stay registered between calls: maximum bytes, count, and idle time. */
export const mrCacheBytes = { default: 256 * MiB, min: 0, max: 1024 * GiB } as const;
export const mrCacheEntriesMax = { default: 1024, min: 0, max: 1_000_000 } as const;
export const mrCacheIdleMs = { default: 10_000, min: 1, max: 86_400_000 } as const;
/**
 * Memory that a session's peer can access where the device has no windows; it grows up to this size. Messages
 * are copied through it, so larger ones are refused.
 */
export const stagingBytes = { default: undefined, min: 256 * KiB, max: 1024 * GiB } as const;

/**
 * A `bytes` value of at least this size is not copied into a bulk message, but sent in place. For smaller
 * values a copy is cheaper than a registration.
 */
export const gatherBytes = 16 * KiB;
/**
 * A message of up to this size is copied when its buffer is new and a device would have to register it. By
 * calculation, pinning and unpinning 256 pages and informing the device takes as long as the copy, and most
 * such buffers are never sent again.
 */
export const newBufferBytes = 1 * MiB;
/**
 * Gather entries of one bulk message; a message with more is copied into one entry (native/session/limits.h
 * has the same number).
 */
export const gatherEntriesMax = 30;
/** Size of a gather entry in its frame. */
export const gatherEntryBytes = 16;
/**
 * A `bytes` field of at least this size in a bulk message is a view of leased memory. A smaller one is a
 * copy, so that it does not keep the whole block in use.
 */
export const leaseBytes = 4 * KiB;
/** Share of the arena that answers kept by an application may use. Further ones are copied out of it. */
export const keptAnswersShare = 1 / 2;
/**
 * Number of requests of each method that warn when the application reads them after their call. An
 * application with this mistake makes it in the first requests.
 */
export const watchedRequests = 8;

/**
 * Bytes that a buffer of allocBuffer() has in addition to the requested ones, for the rest of a response: its
 * other fields, table and gaps (docs/wire/frames.md §2.4).
 */
export const aroundBytes = 4 * KiB;
/** Sealing adds a tag to each chunk of this size (docs/wire/connections.md §1.5). */
export const sealChunkBytes = 64 * KiB;
export const sealTagBytes = 16;

/** Number of staged submissions that are published together: peers overlap best with 8 to 32. */
export const flushEvery = 16;
/**
 * Resolution of deadlines, and slots of the timer wheel (a power of two): one revolution takes four seconds.
 */
export const wheelTickMs = 2;
export const wheelSlots = 2048;
/** Deadlines that may be set at the same time in a thread. */
export const deadlinesMax = 1 << 22;
/**
 * The shortest pause between two garbage collections that search for dropped streams of connect-es while
 * other streams wait, and the longest one when they find nothing.
 */
export const collectPauseMs = { first: 100, max: 30_000 } as const;
/** Maximum heap memory of a decoded MessagePack message; `messageMaxBytes` limits its size on the wire. */
export const decodedBytesMax = 256 * MiB;
/** Longest delay of a JavaScript timer; a longer one would fire at once. */
export const timerMaxMs = 0x7fff_ffff;
/**
 * Time in ms after the deadline or the abort of a client's call in which its interceptors may still pass on
 * the result. After that the caller gets the error without them.
 */
export const interceptorGraceMs = 100;

/** Requests and responses of each method that are checked for properties that are not fields. */
export const checkedMessages = 100;
/**
 * Kinds of errors of a method's handler that are logged with their stacks between two summaries; further ones
 * are only counted.
 */
export const handlerErrorKinds = 4;
/** How often a summary of the counted errors is logged. */
export const handlerErrorSumMs = 60_000;
/** How often a server without `log` summarizes refused clients in a process warning. */
export const refusalSumMs = 60_000;
/** Maximum number of logged characters of such an error. */
export const handlerErrorText = 8192;
/** A server measures the load that it reports over this time: as often as clients make weights. */
export const loadWindowMs = 1_000;
