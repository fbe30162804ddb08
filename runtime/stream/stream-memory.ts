/**
 * Decides which large messages of streams stay in the arena, and which are copied out of it on arrival. A
 * handler that yields received messages still refers to a message while it waits for the next, and the
 * garbage collector cannot know that the message is no longer needed. Enough of such streams would use the
 * whole arena, and would then wait for memory for ever. Therefore the messages that streams keep are limited,
 * so that the next message of any stream has room. This file is used where parts are decoded and read, on the
 * JS thread of the context.
 */
import { contextOptions } from '../boundary/contexts.ts';
import type { FabricContext } from '../boundary/fabric-context.ts';
import type { Sessions } from '../boundary/sessions.ts';
import type { NativeContext } from '../native/native.ts';

/**
 * Shares of the arena. `fetchShare` is the share that fetched requests of a server may use
 * (`memory/arena.h`). `spareShare` is the part of `fetchShare` that is left for messages of other sizes.
 */
const fetchShare = 6 / 8;
const spareShare = 2 / 8;
/** Limit of kept messages. */
const keptShare = fetchShare - spareShare;
/**
 * Additional room for headers and gaps of messages. A session must leave a quarter of the arena to other
 * sessions. Without this additional room, a session that does so could lack a few KiB for its next message,
 * if that message takes a quarter of the arena.
 */
const aroundShare = 1 / 64;

/**
 * The end of the stream that reads. When both ends are on one thread they share the arena. However, each end
 * counts its own copies, because each waits for the other to continue.
 */
export type Reader = 'client' | 'server';

/** A copied message. It exists until its stream has moved past it. */
export class CopiedMessage {
  #memory: StreamMemory | undefined;
  readonly #bytes: number;

  constructor(memory: StreamMemory, bytes: number) {
    this.#memory = memory;
    this.#bytes = bytes;
  }

  /** Must be called when the stream has moved on to another message. Further calls have no effect. */
  forget(): void {
    const memory = this.#memory;
    this.#memory = undefined;
    if (memory !== undefined) memory.copiedBytes -= this.#bytes;
  }
}

/** The state of one context and one end. */
export class StreamMemory {
  /**
   * Total size of the copies that streams have not moved past. It is limited to the size of the arena, so
   * that peers cannot make a side hold more.
   */
  copiedBytes = 0;

  readonly #context: { readonly native: NativeContext; readonly sessions: Pick<Sessions, 'loops'> };
  readonly #arenaBytes: number;
  /** Number of bytes that may still arrive before the arena's usage must be read again. */
  #unwatched = 0;

  constructor(context: { readonly native: NativeContext; readonly sessions: Pick<Sessions, 'loops'> }) {
    this.#context = context;
    this.#arenaBytes = contextOptions().arenaBytes;
  }

  /**
   * Decides about a message of this size in a leased block of the arena. Returns undefined when the message
   * may stay there, otherwise the record of the copy that must be made.
   */
  copy(bytes: number): CopiedMessage | undefined {
    // The size is counted twice, because the block may be larger than its content.
    this.#unwatched -= 2 * bytes;
    const { native } = this.#context;
    const { loops } = this.#context.sessions;
    if (this.#unwatched >= 0 && !loops) return undefined;
    const arena = this.#arenaBytes;
    // When senders are on this thread, their copies need the arena. In that case no message stays in the
    // arena, and the half that is otherwise for kept messages is also available for copies.
    const [kept, copiedMax] = loops
      ? [arena, arena * (1 + keptShare)]
      : [native.stats().arenaLeasedBytes, arena];
    const leftBytes = arena * (fetchShare - aroundShare) - Math.max(bytes, arena * spareShare) - kept;
    this.#unwatched = Math.max(0, leftBytes);
    if (leftBytes >= 0 || this.copiedBytes + bytes > copiedMax) return undefined;
    this.copiedBytes += bytes;
    return new CopiedMessage(this, bytes);
  }
}

const memories = {
  client: new WeakMap<NativeContext, StreamMemory>(),
  server: new WeakMap<NativeContext, StreamMemory>(),
};

export function streamMemory(context: FabricContext, reader: Reader): StreamMemory {
  const known = memories[reader];
  let memory = known.get(context.native);
  if (memory === undefined) {
    memory = new StreamMemory(context);
    known.set(context.native, memory);
  }
  return memory;
}
