/**
 * The words that JS and native code exchange through shared arrays (native.ts). native/session/boundary.h has
 * the same constants; test/native/boundary.test.ts compares the two.
 */

/**
 * Int32 words of one submission. A slot holds `slotPayloadOffset` spare bytes, followed by `metadata |
 * message`.
 */
export const Sub = {
  /** A value of SubOp. */
  op: 0,
  session: 1,
  /**
   * In REQUEST and PART: a free call slot of the session's `callSlots`. In RESPONSE: the `call` word of the
   * request's event.
   */
  call: 2,
  /** REQUEST, PART: method id. */
  method: 3,
  /**
   * RESPONSE: status code, plus `notRun` when the handler did not run. The caller then gets `processed:
   * 'no'`.
   */
  status: 3,
  /**
   * Number of the send slot, taken from the free stack. Native code returns the slot when the fabric has
   * finished with it.
   */
  slot: 4,
  /** Length of the metadata, or 0 for none. The metadata begins at the payload offset of the slot. */
  metadataBytes: 5,
  /** Length of the message, which follows the metadata. */
  messageBytes: 6,
  /** REQUEST, PART: remaining time in microseconds, at most 2^32 - 1 (unsigned); 0 for no time limit. */
  timeoutUs: 7,
  words: 8,
} as const;
/**
 * `part`: a request that belongs to a stream; its metadata begins with a part header (docs/wire/calls.md §8).
 */
export const SubOp = { request: 1, response: 2, part: 3 } as const;
/** A bit in the `status` word of a response. It says that the handler did not run. */
export const notRun = 0x100;
/**
 * Flags of a bulk submission. `submitAligned`: its gather entries make up the aligned layout
 * (docs/wire/frames.md §2.4). `submitReplyBufferOnly`: a response that does not fit its reply buffer is
 * refused.
 */
export const submitAligned = 1;
export const submitReplyBufferOnly = 2;

/**
 * Int32 words of one event. Some words have several names, because different kinds of events use them for
 * different values. Words that an event does not use are 0.
 */
export const Ev = {
  /** A value of EvKind. */
  kind: 0,
  session: 1,
  /**
   * REQUEST, CANCELLED: an opaque call handle for the response. SETTLED, FAILED, RELEASED: the call slot with
   * which the request was submitted.
   */
  call: 2,
  /** SENT: the token that `submitBulk` returned. */
  token: 2,
  /** EVICTED: the low word of the buffer's key. */
  keyLow: 2,
  /** REQUEST: method id. */
  method: 3,
  /** SETTLED: status from the peer. CANCELLED: 1 or 4. */
  status: 3,
  /** FAILED: bits of PendingRelease. */
  pendingRelease: 3,
  /** EVICTED: the high word of the buffer's key. */
  keyHigh: 3,
  /**
   * The location of the message; 0 when there is no message. Above 0: the message is in the arena block with
   * that number, and one reference to the block now belongs to JS. -1: it is in the receive slot. -2: it is
   * in `reassembledMessages`, with the metadata in the receive slot.
   */
  region: 4,
  /**
   * The byte offset of `metadata | message` when the message is in a receive slot. The byte offset of the
   * message when it is in `reassembledMessages`.
   */
  offset: 5,
  /**
   * The value is 1 for a message in an arena block with the aligned layout, which begins at the block's
   * start; otherwise 0.
   */
  aligned: 5,
  metadataBytes: 6,
  messageBytes: 7,
  /** REQUEST: remaining time in microseconds; 0 for no deadline. */
  timeoutUs: 8,
  /** FAILED: a Reason. */
  reason: 8,
  /**
   * SETTLED: the size of a response for which the server got no memory, when the call itself is the cause.
   * The call is the cause in two cases: it was submitted with `submitReplyBufferOnly`, or its request holds
   * most of the arena. In all other cases the word is 0.
   */
  refusedBytes: 8,
  /** Byte offset of the metadata in the memory of the receive slot. */
  metadataOffset: 9,
  /** SETTLED, FAILED: whether the handler may have run. 0: no; 1: maybe; 2: yes. */
  processed: 10,
  /** REQUEST, PART_WAITS: 1 for a part of a stream, otherwise 0. */
  part: 10,
  /**
   * 1 + the number of the session's receive slot that holds the frame. For short messages the word is 1 +
   * `shortMessageSlots` + the index in `shortMessages`.
   */
  receiveSlot: 11,
  words: 12,
} as const;
export const EvKind = {
  /**
   * A server gets it when a request is complete. Its bytes in the receive slab are valid only during the
   * callback.
   */
  request: 1,
  /**
   * A client gets it when the call's response has arrived. The call then exposes no memory. The bytes of the
   * response are also valid only during the callback.
   */
  settled: 2,
  /**
   * A client gets it when the call has ended without the peer's response (session lost, refused here,
   * cancelled). The call then exposes no memory, unless it is pending release (PendingRelease).
   */
  failed: 3,
  /**
   * A server gets it when the client has cancelled the call. If JS submits a response, the response is
   * dropped.
   */
  cancelled: 4,
  /**
   * The memory of a bulk submission (`token`) is no longer in use. JS then drops the references to the
   * message's buffers.
   */
  sent: 5,
  /**
   * The session has ended; `sessionError(session)` says why. The event is sent exactly once, after the last
   * event of the session's calls.
   */
  sessionDown: 6,
  /** Send slots are free again after JS found the stack empty. */
  slotsFree: 7,
  /** A registration was evicted: `keyLow` and `keyHigh` are the buffer's key. */
  evicted: 8,
  /**
   * The session's queue pair is connected. Each connectSession() that returned '' is followed by this event
   * or by sessionDown.
   */
  sessionUp: 9,
  /**
   * A large message of a stream waits until the application needs it, because the memory for speculative
   * fetching is used up. For servers, `call` is the handle of the request (`want` it, or answer it without
   * reading); its metadata is available as in a REQUEST. For clients, `call` is the call slot of the request
   * that the message answers.
   */
  partWaits: 10,
  /**
   * A client gets it when the peer has released a call that FAILED with PendingRelease.slot. The call slot is
   * now free. The SENT event of the call has come before.
   */
  released: 11,
  /** Arena memory has become free after JS asked for it by Ctl.wantMemory. */
  memoryFree: 12,
  /** Calls have waited for arena memory for some time. The event is sent once in the life of a context. */
  memoryShort: 13,
  /**
   * The device was removed. Its sessions end, and further sessions cannot be created. The event is sent once.
   */
  deviceGone: 14,
} as const;
/**
 * Resources that a cancelled call keeps until the peer has answered its CANCEL, for the word `pendingRelease`
 * of a FAILED event.
 */
export const PendingRelease = {
  /** The call slot, until RELEASED. */
  slot: 1,
  /**
   * The reply buffer. The peer may still write to the memory, so it must be taken away from the application.
   */
  replyBuffer: 2,
} as const;
/** The `region` of a message that lies in its receive slot, and of a message that came in segments. */
export const receiveSlab = -1;
export const reassembledMessage = -2;
/** Receive slots from this number on are indexes in `shortMessages`. */
export const shortMessageSlots = 1 << 24;
/**
 * The first window of a session's receives has 2^firstWindowBits slots; each further window has as many slots
 * as all windows before it.
 */
export const firstWindowBits = 2;
/** Returns the number of the window that contains a receive slot. */
export const receiveWindow = (slot: number): number =>
  32 - firstWindowBits - Math.clz32(slot | ((1 << firstWindowBits) - 1));
/**
 * Int32 words of a gather entry in `gatherEntries`, whose bytes lie in a block of the arena. `lent` is 1 when
 * the application has leased the block.
 */
export const GatherEntry = { block: 0, offset: 1, bytes: 2, lent: 3, words: 4 } as const;
/** In `keys` of `submitBulk`: the gather entry lies in an arena block that the application has leased. */
export const leasedMemory = -1;
/**
 * In `keys` of `submitBulk`: the gather entry is memory of the application without a key, and is copied at
 * submission.
 */
export const copiedMemory = -2;
/** The uses of an arena block. memory/arena.h says how much of the arena each use may have. */
export const Use = {
  /** An outgoing message of a stream. */
  part: 1,
  request: 2,
  response: 4,
  application: 6,
} as const;
/**
 * The reasons why a call failed on this side, for the `reason` word of a FAILED event.
 * runtime/core/errors/failure.ts has the texts.
 */
export const Reason = {
  sessionLost: 1,
  cancelled: 2,
  deadline: 3,
  noMemory: 4,
  tooLarge: 5,
  registration: 6,
  /** The message is larger than the limit of the staging memory. */
  staging: 7,
  /** Memory of the request was transferred or detached while the call used it. */
  detached: 8,
  /**
   * A large buffer is being registered. Submit the message again after the next memoryFree event
   * (Ctl.wantMemory).
   */
  registering: 9,
} as const;

/** Int32 words of `control`. */
export const Ctl = {
  /** Number of staged submissions that are not flushed yet. JS increments it; native code resets it to 0. */
  staged: 0,
  /** Number of free send slots on the `freeSlots` stack. JS pops with `freeSlots[--control[freeSlots]]`. */
  freeSlots: 1,
  /**
   * The word is 1 while native code runs the events callback. Native code flushes when the callback returns.
   */
  inCallback: 2,
  /** JS sets it to 1 when it found no free slot. Native code then sends one slotsFree event. */
  wantSlots: 3,
  /**
   * JS sets it to 1 when it found no arena memory, and flushes. Native code then sends one memoryFree event.
   */
  wantMemory: 4,
  /** Number of sessions of the context. */
  sessions: 5,
  /** Number of attempts at calls beyond the first attempt, counted by JS. */
  retries: 6,
  /**
   * Size of the arena allocation that failed in the last submitBulk with the result noMemory, as an unsigned
   * 32-bit number.
   */
  shortBytes: 7,
  words: 16,
} as const;

/**
 * Int32 words of `sessionSlots`, by table index of a session. `held` is the number of send slots that native
 * code holds for the session. JS sets `wanted` to 1 when it finds that the session may take no slot. Native
 * code then sends slotsFree when the session may take a slot again.
 */
export const Slots = { held: 0, wanted: 1, words: 2 } as const;
