/**
 * Which large messages of streams stay in the arena, and which are copied out of it when they come. A handler
 * that yields what it has received still refers to a message while it waits for the next one, and no
 * collector can know that it will not look at it again: enough of such streams would hold the whole arena,
 * and wait for it for ever. So what streams keep of it ends where the next message, theirs or another's,
 * would find no room. Used where parts are decoded and read, on the JS thread of the context.
 */
import { contextOptions } from '../boundary/contexts.ts';
import type { FabricContext } from '../boundary/fabric-context.ts';
import type { Sessions } from '../boundary/sessions.ts';
import type { NativeContext } from '../native/native.ts';

/**
 * Of the arena: what requests that a server fetches may take (`memory/arena.h`), and what of that is left for
 * messages of other sizes.
 */
const fetchShare = 6 / 8;
const spareShare = 2 / 8;
/** What is kept at most. */
const keptShare = fetchShare - spareShare;
/**
 * Left beside that for what is around messages on their way. Without it a session that leaves a quarter to
 * others, as it must, could be short of a few KiB for the next message of a quarter of the arena.
 */
const aroundShare = 1 / 64;

/**
 * Which end of a stream reads. Where both are on one thread they share the arena, but neither takes the
 * copies of the other: each waits for the other to go on.
 */
export type Reader = 'client' | 'server';

/** A message that has been copied, until its stream has moved past it. */
export class CopiedMessage {
  #memory: StreamMemory | undefined;
  readonly #bytes: number;

  constructor(memory: StreamMemory, bytes: number) {
    this.#memory = memory;
    this.#bytes = bytes;
  }

  /** The stream gives another message, or none. Calls after the first do nothing. */
  forget(): void {
    const memory = this.#memory;
    this.#memory = undefined;
    if (memory !== undefined) memory.copiedBytes -= this.#bytes;
  }
}

/** Of one context, and one end. */
export class StreamMemory {
  /**
   * Of copies that no stream has moved past. What peers make a side hold has a bound: so much again as the
   * arena.
   */
  copiedBytes = 0;

  readonly #context: { readonly native: NativeContext; readonly sessions: Pick<Sessions, 'loops'> };
  readonly #arenaBytes: number;
  /** Bytes that may still come before the arena must be looked at. */
  #unwatched = 0;

  constructor(context: { readonly native: NativeContext; readonly sessions: Pick<Sessions, 'loops'> }) {
    this.#context = context;
    this.#arenaBytes = contextOptions().arenaBytes;
  }

  /**
   * A message of so many bytes is in the arena, and its block leased. Undefined: it stays there; else it is
   * to be copied.
   */
  copy(bytes: number): CopiedMessage | undefined {
    // A block may be larger than what is in it.
    this.#unwatched -= 2 * bytes;
    const { native } = this.#context;
    const { loops } = this.#context.sessions;
    if (this.#unwatched >= 0 && !loops) return undefined;
    const arena = this.#arenaBytes;
    // What the senders of this thread have copied waits for what is kept here, and takes as much as it may:
    // nothing is kept then, and the half that would have been may be copies, too.
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
