/**
 * The words that JS and native code exchange through shared arrays (native.ts), each with its one name.
 * Mirrored by native/session/boundary.h; test/native/boundary.test.ts compares the two.
 */

/** Int32 words of one submission. A slot holds `slotPayloadOffset` spare bytes, then `metadata | message`. */
export const Sub = {
  /** SubOp */
  op: 0,
  session: 1,
  /**
   * REQUEST, PART: call slot, chosen from the session's `callSlots`, unused now. RESPONSE: the `call` word of
   * the request's event.
   */
  call: 2,
  /** REQUEST, PART: method id. */
  method: 3,
  /**
   * RESPONSE: status code, plus `notRun` when the handler did not run (the caller then learns processed: no).
   */
  status: 3,
  /**
   * Send slot number, taken from the free stack. Native code puts it back when the fabric is done with it.
   */
  slot: 4,
  /** Bytes of metadata (0: none), at the payload offset of the slot. */
  metadataBytes: 5,
  /** Bytes of the message, right behind the metadata. */
  messageBytes: 6,
  /** REQUEST, PART: time left in microseconds, 0 for none, at most 2^32 - 1 (unsigned). */
  timeoutUs: 7,
  words: 8,
} as const;
/**
 * `part`: a request that belongs to a stream; its metadata begins with a part header (docs/wire/calls.md §8).
 */
export const SubOp = { request: 1, response: 2, part: 3 } as const;
/** Bit of a response's `status` word: the handler did not run. */
export const notRun = 0x100;
/**
 * Bits of a bulk submission: its gather entries are an aligned message (docs/wire/frames.md §2.4); the
 * response goes into its reply buffer or nowhere.
 */
export const submitAligned = 1;
export const submitReplyBufferOnly = 2;

/**
 * Int32 words of one event. A place that kinds of events use for different things has a name for each; what
 * an event does not have is 0.
 */
export const Ev = {
  /** EvKind */
  kind: 0,
  session: 1,
  /**
   * REQUEST, CANCELLED: opaque call handle for the response. SETTLED, FAILED, RELEASED: the call slot that
   * the request was submitted with.
   */
  call: 2,
  /** SENT: what `submitBulk` has returned. */
  token: 2,
  /** EVICTED: the low word of the buffer's key. */
  keyLow: 2,
  /** REQUEST: method id. */
  method: 3,
  /** SETTLED: status from the peer. CANCELLED: 1 or 4. */
  status: 3,
  /** FAILED: bits of Held. */
  held: 3,
  /** EVICTED: the high word of the buffer's key. */
  keyHigh: 3,
  /**
   * Where the bytes are: 0 none; > 0 arena block of that number (one reference now belongs to JS); -1 in the
   * receive slot; -2 `reassembledMessages`, and the metadata in the receive slot.
   */
  region: 4,
  /**
   * In a receive slot: byte offset of `metadata | message`. In `reassembledMessages`: that of the message.
   */
  offset: 5,
  /** In an arena block, which has the message alone, from its start: 1 for an aligned message, else 0. */
  aligned: 5,
  metadataBytes: 6,
  messageBytes: 7,
  /** REQUEST: time left in microseconds, 0 none. */
  timeoutUs: 8,
  /** FAILED: a Reason. */
  reason: 8,
  /** SETTLED: what the server needed when `submitReplyBufferOnly` refused it, else 0. */
  beyondReplyBuffer: 8,
  /** Byte offset of the metadata, in the memory of the receive slot. */
  metadataOffset: 9,
  /** SETTLED, FAILED: 0 no, 1 maybe, 2 yes: whether the handler can have run. */
  processed: 10,
  /** REQUEST, PART_WAITS: 1 for a part of a stream, else 0. */
  part: 10,
  /**
   * Plus 1: which of the session's receive slots the frame is in, or from `shortMessageSlots` on, which place
   * of `shortMessages`.
   */
  receiveSlot: 11,
  words: 12,
} as const;
export const EvKind = {
  /** Server: a request is complete. Its bytes in the receive slab are valid only during the callback. */
  request: 1,
  /** Client: the call's response is here, no memory of the call is exposed any more. Bytes as above. */
  settled: 2,
  /**
   * Client: the call ended without the peer's answer (session lost, refused here, cancelled). Nothing is
   * exposed any more, unless it is held (Held).
   */
  failed: 3,
  /** Server: the client gave the call up; respond or not, the answer is dropped. */
  cancelled: 4,
  /** A bulk submission's memory (token) is no longer in use: drop references to its buffers. */
  sent: 5,
  /**
   * The session is over; `sessionError(session)` says why. Comes after the last event of its calls. Exactly
   * once.
   */
  sessionDown: 6,
  /** Send slots are free again after the stack was found empty. */
  slotsFree: 7,
  /** A registration was evicted: `keyLow` and `keyHigh` are the buffer's key. */
  evicted: 8,
  /**
   * The session's queue pair is connected. After each connectSession() that returned '' there is one of this
   * or of sessionDown, whichever comes first.
   */
  sessionUp: 9,
  /**
   * A large message of a stream waits until it is wanted, since what may be fetched ahead is. Server: `call`
   * is the handle of the request (`want` it, or answer it unread), and its metadata is there as in a REQUEST.
   * Client: `call` is the call slot of the request that it answers.
   */
  partWaits: 10,
  /**
   * Client: the peer has let go of a call that FAILED with Held.slot. The call slot is free. SENT has come
   * before.
   */
  released: 11,
  /** Arena memory has come free after JS asked by Ctl.wantMemory. */
  memoryFree: 12,
  /** Calls have waited for arena memory for some time. Once in a context's life. */
  memoryShort: 13,
  /** The device was removed: its sessions go down, and nothing new can be made. Once. */
  deviceGone: 14,
} as const;
/**
 * What a given-up call still has while the peer has not answered its cancel: `held` word of a FAILED event.
 */
export const Held = {
  /** Its call slot, until RELEASED. */
  slot: 1,
  /**
   * The block that was given for the answer: the peer may still write to it, so it must be taken from the
   * application.
   */
  replyBuffer: 2,
} as const;
/** `region` of a message in its receive slot, and of one that came in segments. */
export const receiveSlab = -1;
export const reassembledMessage = -2;
/** Receive slots from here on are places of `shortMessages`. */
export const shortMessageSlots = 1 << 24;
/**
 * The first window of a session's receives has 2 to this power slots, and each further one as many as all
 * before it.
 */
export const firstWindowBits = 2;
/** The number of the window that a receive slot is in. */
export const receiveWindow = (slot: number): number =>
  32 - firstWindowBits - Math.clz32(slot | ((1 << firstWindowBits) - 1));
/**
 * Int32 words of a gather entry in `gatherEntries`, which lies in a block of the arena. `lent`: 1, the
 * application has that, too.
 */
export const GatherEntry = { block: 0, offset: 1, bytes: 2, lent: 3, words: 4 } as const;
/** In `keys` of `submitBulk`: the gather entry lies in an arena block that the application has, too. */
export const leasedMemory = -1;
/** The same: it is memory of the application that has no key, and is copied as the message is submitted. */
export const copiedMemory = -2;
/** What an arena block is for: memory/arena.h says how much of the arena each may have. */
export const Use = {
  /** A message of a stream on its way out. */
  part: 1,
  request: 2,
  response: 4,
  application: 6,
} as const;
/** Why a call failed here: `reason` word of a FAILED event. runtime/core/errors/failure.ts has the texts. */
export const Reason = {
  sessionLost: 1,
  cancelled: 2,
  deadline: 3,
  noMemory: 4,
  tooLarge: 5,
  registration: 6,
  /** Larger than the staging memory may ever be. */
  staging: 7,
  /** Memory of the request was transferred or detached while the call used it. */
  detached: 8,
  /**
   * A large buffer is being registered: submit the message again when memory has come free (Ctl.wantMemory).
   */
  registering: 9,
} as const;

/** Int32 words of `control`. */
export const Ctl = {
  /** Submissions staged and not yet flushed: JS adds, native resets to 0. */
  staged: 0,
  /** Free send slots on the `freeSlots` stack: JS pops with `freeSlots[--control[freeSlots]]`. */
  freeSlots: 1,
  /** 1 while native code is inside the events callback and will flush when it returns. */
  inCallback: 2,
  /** JS sets it to 1 when it found no free slot: native then sends one slotsFree event. */
  wantSlots: 3,
  /** JS sets it to 1 when it found no arena memory, and flushes: native then sends one memoryFree event. */
  wantMemory: 4,
  /** Sessions of the context. */
  sessions: 5,
  /** Attempts at calls beyond their first, counted by JS. */
  retries: 6,
  /**
   * What the last submitBulk that was refused with noMemory has asked of the arena in vain, as 32 bits
   * without a sign.
   */
  shortBytes: 7,
  words: 16,
} as const;

/**
 * Int32 words of `sessionSlots`, by place of a session: send slots that native code holds for it; 1 when JS
 * found that it may have none, so that slotsFree waits until it may.
 */
export const Slots = { held: 0, wanted: 1, words: 2 } as const;
