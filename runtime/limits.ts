/**
 * The limits and defaults of the runtime, each with its reason. Options that users may set take their default
 * and range from here (core/options.ts checks them). The limits of the native layers are in
 * native/session/limits.h.
 */

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

/**
 * Calls in flight per session. The smaller of both sides' values applies. 256 calls hide a round trip at any
 * rate that JS can reach. A call slot has 12 bits on the wire.
 */
export const inflight = { default: 256, min: 1, max: 4096 } as const;
/**
 * Open streams per session. The smaller of both sides' values applies. Further streams wait in the channel.
 * Each stream may have a large message in memory, and takes `slotsPerStream` of the call slots that unary
 * calls leave.
 */
export const streams = { default: 64, min: 0, max: 512 } as const;
/**
 * Call slots per stream: one for the stream, one for a part in each direction, and one more for larger
 * windows.
 */
export const slotsPerStream = 4;
/** Call slots of a session. The call word has 12 bits for the call slot (native/session/limits.h). */
export const callSlots = 4096;
/**
 * Calls that wait in a channel for a call slot, a send slot or the connection. Further calls fail, so that
 * memory does not grow without a limit.
 */
export const queuedCalls = { default: 4096, min: 0, max: 1_000_000 } as const;
/**
 * Parts of a stream that are in flight or unread, per direction. A part of small messages has about 8 KiB,
 * and eight parts hide a round trip at any rate that JS can reach.
 */
export const streamParts = 8;
/**
 * Maximum size of a part with several messages. It is less on devices with smaller slots. With longer parts,
 * more data would be left unread when a reader stops.
 */
export const streamPackedBytes = 8 * KiB;
/**
 * Bytes of large messages of a stream that are in flight or unread, per direction. A slow reader cannot keep
 * more of the arena in use. A single message may always be sent.
 */
export const streamBytes = 8 * MiB;
/**
 * Time in ms that the server has to answer the parts of a cancelled stream. After this time, unanswered parts
 * are cancelled one by one, and stay pending release until the server answers.
 */
export const partLingerMs = 5_000;
/**
 * Largest accepted message. The default is generous, because a limit of 4 MiB causes the first error that
 * gRPC users meet. Lengths on the wire have 32 bits.
 */
export const messageBytes = { default: 64 * MiB, min: 1 * KiB, max: 4 * GiB - 1 } as const;

/**
 * Pauses of an attempt to connect while the queue of a unix socket is full. Each pause is twice as long as
 * the previous pause.
 */
export const fullQueuePauseMs = { first: 20, max: 500 } as const;
/**
 * Time limit of one attempt to connect, with its handshake. A peer on the same network answers within
 * milliseconds.
 */
export const connectTimeoutMs = { default: 5_000, min: 1, max: 600_000 } as const;
/**
 * The first and the longest pause after a failed attempt to connect. Each pause is 1.6 times as long as the
 * last, and short pauses vary randomly by 20 %. A restarted process is usually back within a second.
 */
export const backoffMs = { default: 50, min: 1, max: 600_000 } as const;
export const backoffMaxMs = { default: 10_000, min: 1, max: 600_000 } as const;
/**
 * A server's time limit from accepting a socket until its session is ready. A silent peer cannot occupy a
 * socket for longer.
 */
export const handshakeTimeoutMs = { default: 5_000, min: 1, max: 600_000 } as const;
/**
 * Connections that the system queues until this side accepts them (listen(2)). The system's maximum is
 * net.core.somaxconn. When the queue is full, a client's attempt takes one to several seconds, because the
 * client's system must retry.
 */
export const listenBacklog = 1_024;
/**
 * Maximum number of silent sockets, and maximum number of handshakes in progress. Further handshakes wait in
 * a queue. A further silent socket evicts the oldest silent socket.
 */
export const handshakes = { default: 128, min: 1, max: 65_536 } as const;
/** Time for the first frame of a connection before its eviction: the longest expected round trip. */
export const handshakeGraceMs = 250;
/**
 * Time for the next frame of a handshake before the handshake may be evicted. The peer may be overloaded,
 * too.
 */
export const handshakeStallMs = 500;
/**
 * A handshake whose peer is silent for this time yields its slot to a waiting handshake, and continues
 * without a slot.
 */
export const handshakeYieldMs = 250;
/**
 * Time for which an address ranks last after a failed handshake, and the number of such addresses that a
 * server remembers.
 */
export const suspectMs = 60_000;
export const suspectsMax = 32_768;
/**
 * Milliseconds between two TLS handshakes that a server begins with suspect addresses. Each handshake costs
 * the server a signature, up to 1 ms, so these handshakes take at most a tenth of the thread's time.
 */
export const suspectTlsApartMs = 10;
/**
 * `handshakesMax` times this factor limits the connections that are silent in their grace time. The same
 * limit applies to those that wait in the queue, and to those that continue without a slot.
 */
export const handshakeQueueFactor = 8;
/**
 * Time in ms for which calls of a lost session wait for the server's reason. They wait only when the server
 * itself is still running, because the reason is then on its way.
 */
export const lastWordsMs = 200;
/**
 * Longest wait for a handshake slot. A client that would wait longer is told when to retry. The wait is
 * shorter than `connectTimeoutMs`, which includes it.
 */
export const handshakeWaitMs = 2_000;
/** Longest retry-after time. Serving 10,000 clients takes about ten seconds. */
export const retryAfterMsMax = 30_000;
/** Time limit for an application's `authorize` that returns a promise. */
export const authorizeMs = 5_000;
/** Credentials are renewed this long before they expire, because they may be in flight and clocks differ. */
export const credentialsMarginMs = 30_000;
/** Time limit of a credentials function. Afterwards it is called again. Calls that wait share one answer. */
export const credentialsMs = 30_000;
/** Ids of users and groups. The value 0xffff_ffff is left out, because it means that no id is given. */
export const userId = { default: undefined, min: 0, max: 0xffff_fffe } as const;
/** The permissions of a unix socket's file. */
export const socketMode = { default: undefined, min: 0, max: 0o777 } as const;
/**
 * Sessions of one server. Each session has its own queue pair and receives (inflightMax slots). The maximum
 * is the maximum of a thread's context (native/session/limits.h).
 */
export const sessions = { default: 1024, min: 1, max: 16_384 } as const;
/**
 * Limit of connections from one network address, so that a faulty client leaves room for other clients. A
 * client process needs one connection.
 */
export const sessionsPerPeer = { default: 64, min: 1, max: 65_536 } as const;
/**
 * Quotas of an identity, which are unlimited by default. Rates are per second, and the amount of one second
 * may be used at once.
 */
export const quotaSessions = { default: undefined, min: 1, max: 65_536 } as const;
export const quotaCallsPerSecond = { default: undefined, min: 1, max: 1_000_000_000 } as const;
export const quotaBytesPerSecond = { default: undefined, min: 1, max: 1024 * GiB } as const;
/** Arena memory in bytes for large requests of one session. The smallest blocks have 4 KiB. */
export const quotaArenaBytes = { default: undefined, min: 64 * KiB, max: 1024 * GiB } as const;
/** Bytes of memory that are exposed to an identity, over all its sessions. */
export const quotaExposedBytes = { default: undefined, min: 1, max: 1024 * GiB } as const;
/** Accounts kept for identities without a session, so that a new connection does not get a new amount. */
export const quotaAccountsClosed = 1_024;
/**
 * Asynchronous handlers that run at the same time in a server. The default is enough for 64 sessions with
 * full windows. Further requests are rejected before any work is done for them.
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
 * The longest time that a shutdown waits for its listeners before it notifies clients. A registry that
 * answers takes milliseconds. Slower listeners must not use up the grace period of an orchestrator.
 */
export const departureMs = 1_000;
/**
 * Time from asking a client to make no more calls until further calls are rejected. This is longer than any
 * round trip.
 */
export const goawayNoticeMs = 1_000;
/**
 * Age and idle time after which a server makes a client connect again. By default a server never does this.
 */
export const connectionAgeMaxMs = { default: undefined, min: 1, max: 1_000_000_000 } as const;
export const connectionIdleMaxMs = { default: undefined, min: 1, max: 1_000_000_000 } as const;
/**
 * Time that calls in flight have when age or idleness ends their connection. It is longer than most time
 * limits of calls.
 */
export const connectionAgeGraceMs = { default: 60_000, min: 0, max: 86_400_000 } as const;
/**
 * The maximum age of connections varies by this share in both directions, so that clients that connected
 * together do not reconnect together.
 */
export const connectionAgeJitter = 0.1;
/** Time that `close()` waits for the native session's end, or for a socket's peer to read the last bytes. */
export const closeTimeoutMs = 2_000;

/** Maximum size of a control frame. A peer cannot make this side buffer more. A hello has less than 1 KiB. */
export const controlFrameBytes = 64 * KiB;
/** Maximum length of texts in control frames, such as reasons and identities. */
export const controlTextBytes = 1 * KiB;
/** Maximum size of a queue pair's address blob (native/fabric/fabric.h). */
export const fabricAddressBytes = 512;
/**
 * Size of the proof that a queue pair belongs to its sender, and size of each side's share of the key without
 * TLS.
 */
export const bindingProofBytes = 32;
export const bindingSecretBytes = 32;
/** Size of a side's random name in handles of remote memory, which tells them from those of other sides. */
export const exposerBytes = 8;
/** Maximum number of fabrics in a hello. */
export const fabricsMax = 16;

/**
 * Number of receives that a session has in addition to the receives for calls. They are for control frames
 * and for requests that wait. `slotHeadBytes` is the number of bytes before each slot
 * (native/session/limits.h).
 */
export const receivesBesides = 20;
export const slotHeadBytes = 64;

/** The maximum length of a path (PATH_MAX). */
export const traceFolderBytes = 4096;
/** Number of trace files that a thread keeps. A peer that makes sessions fail must not fill a disk. */
export const traceFilesMax = 16;
/** Pause between two trace files with the same reason, once `traceFilesMax` is reached. */
export const tracePauseMs = 1_000;
/**
 * Time for which a context stays open after its last channel or server has closed, so that a program that
 * opens a channel for each call reuses the context.
 */
export const contextLingerMs = 1_000;
/** Interval at which an unused context checks whether its last lease has been released. */
export const leaseCheckMs = 1_000;

/**
 * Idle time after which TCP probes the peer's host. Probes are needed only for lost hosts, because the end of
 * a process is noticed at once.
 */
export const tcpKeepAliveMs = 20_000;
/** When a device was not found, no further check is made for this time. */
export const missingDeviceMs = 1_000;
/**
 * Log lines per second, so that a hostile peer cannot fill a disk. The limit applies to the warnings of all
 * channels and servers together, and to each peer address in a server's `log`.
 */
export const logLinesPerSecond = 10;
/**
 * Number of addresses that have a separate limit of log lines within a second. Further addresses share one
 * limit.
 */
export const logPeersMax = 1_024;

/** Maximum size of the metadata of one message in wire form. The metadata shares a slot with the message. */
export const metadataBytes = 8 * KiB;
export const metadataEntries = 64;
/** Maximum length of the text of an error response in UTF-8 bytes. Longer texts are cut. */
export const errorTextBytes = 1 * KiB;

/** Size of a send or receive slot. 8 KiB are two pages. Copying more than that costs more than a READ. */
export const slotBytes = { default: 8 * KiB, min: 1 * KiB, max: 64 * KiB } as const;
/**
 * Default size of a slot on shm. A message with a value of 16 KiB fits into one slot. One SEND costs three
 * quarters of two SENDs whose segments must be joined. Slots of shm are not pinned, and use only the pages
 * that messages touch. They are not larger, because the 272 slots of a session are used in turn.
 */
export const shmSlotBytes = 17 * KiB;
/**
 * Send slots of a thread's context, which its sessions share. The default is enough for four sessions with
 * full windows.
 */
export const sendSlots = { default: 1024, min: 16, max: 65_536 } as const;
/** Mask of the low bits of a session number, which are the session's index in the session table. */
export const sessionIndexMask = 0x3fff;
/**
 * A session may take another send slot as long as it holds at most `slotShare` times as many slots as are
 * free. The last `reservedSlots` are for sessions that have less than their share of the slots
 * (native/session/limits.h).
 */
export const slotShare = 3;
export const reservedSlots = 16;
/**
 * Time for which a message waits for arena memory into which it must be copied. Native code has the same
 * limit.
 */
export const memoryWaitMs = 10_000;
/**
 * Time before a call's deadline at which the response stops waiting for memory, so that the caller still gets
 * the error. A tenth of the call's remaining time is used if it is shorter.
 */
export const tellingMsMax = 100;
/** Maximum size of the arena for large messages and leases. The arena grows as needed. */
export const arenaBytes = { default: 256 * MiB, min: 4 * MiB, max: 1024 * GiB } as const;
/** Limits for application buffers that stay registered between calls: total bytes, number, and idle time. */
export const mrCacheBytes = { default: 256 * MiB, min: 0, max: 1024 * GiB } as const;
export const mrCacheEntriesMax = { default: 1024, min: 0, max: 1_000_000 } as const;
export const mrCacheIdleMs = { default: 10_000, min: 1, max: 86_400_000 } as const;
/**
 * Maximum size of the memory that a session's peer can access on a device without windows. The memory grows
 * as needed. Messages are copied through it, so larger messages are refused.
 */
export const stagingBytes = { default: undefined, min: 256 * KiB, max: 1024 * GiB } as const;

/**
 * A `bytes` value of at least this size is sent in place, and not copied into a bulk message. A copy of a
 * smaller value is cheaper than a registration.
 */
export const gatherBytes = 16 * KiB;
/**
 * A message up to this size is copied when its buffer is new and a device would have to register the buffer.
 * By calculation, pinning and unpinning 256 pages and informing the device takes as long as the copy. Most
 * such buffers are never sent again.
 */
export const newBufferBytes = 1 * MiB;
/**
 * Maximum number of gather entries of one bulk message. A message with more entries is copied into one entry
 * (native/session/limits.h has the same number).
 */
export const gatherEntriesMax = 30;
/** Size of a gather entry in its frame. */
export const gatherEntryBytes = 16;
/**
 * A `bytes` field of at least this size in a bulk message is a view of leased memory. A smaller value is a
 * copy, so that it does not keep the whole block in use.
 */
export const leaseBytes = 4 * KiB;
/**
 * Share of the arena that responses kept by an application may use. Further responses are copied out of the
 * arena.
 */
export const keptAnswersShare = 1 / 2;
/**
 * Number of requests of each method that are watched, so that a warning is shown when the application reads
 * them after their call. An application with this mistake usually makes it in the first requests.
 */
export const watchedRequests = 8;

/**
 * Bytes that a buffer of allocBuffer() has in addition to the requested bytes. They are for the other fields,
 * the table and the gaps of a response (docs/wire/frames.md §2.4).
 */
export const aroundBytes = 4 * KiB;
/** Sealing adds a tag to each chunk of this size (docs/wire/connections.md §1.5). */
export const sealChunkBytes = 64 * KiB;
export const sealTagBytes = 16;

/**
 * Number of staged submissions that are published together. The work of the two peers overlaps best with 8 to
 * 32.
 */
export const flushEvery = 16;
/**
 * Resolution of deadlines in ms, and number of slots of the timer wheel (a power of two). One revolution
 * takes four seconds.
 */
export const wheelTickMs = 2;
export const wheelSlots = 2048;
/** Maximum number of deadlines that may be set at the same time in a thread. */
export const deadlinesMax = 1 << 22;
/**
 * Shortest and longest pause between two garbage collections that search for dropped streams of connect-es
 * while other streams wait. The pause grows while the collections find nothing.
 */
export const collectPauseMs = { first: 100, max: 30_000 } as const;
/**
 * Maximum heap memory of a decoded MessagePack message. `messageMaxBytes` limits the size of the message on
 * the wire.
 */
export const decodedBytesMax = 256 * MiB;
/** Longest delay of a JavaScript timer. A timer with a longer delay would fire at once. */
export const timerMaxMs = 0x7fff_ffff;
/**
 * Time in ms after the deadline or the abort of a client's call in which the call's interceptors may still
 * pass on the result. After this time the caller gets the error directly.
 */
export const interceptorGraceMs = 100;

/** Number of requests and responses of each method that are checked for properties that are not fields. */
export const checkedMessages = 100;
/**
 * Number of kinds of errors of one method's handler that are logged with their stacks between two summaries.
 * Errors of further kinds are only counted.
 */
export const handlerErrorKinds = 4;
/** Interval at which a summary of the counted errors is logged. */
export const handlerErrorSumMs = 60_000;
/** Interval at which a server without `log` shows a process warning that sums up refused clients. */
export const refusalSumMs = 60_000;
/** Maximum number of logged characters of a handler's error. */
export const handlerErrorText = 8192;
/** Window in ms over which a server measures its load. Clients compute weights as often. */
export const loadWindowMs = 1_000;
