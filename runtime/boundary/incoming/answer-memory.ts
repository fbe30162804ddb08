/**
 * Which large answers stay in the arena, as views that are lent to the caller, and which are copied out of it
 * when they come. A caller that drops its answers, or releases them, is lent each one: their memory comes
 * back soon (native/binding/buffers/young_buffers.h), and a copy costs several times as much, for the pages
 * that it needs. One that keeps them, in a cache for example, would hold the whole arena in the end, and
 * every large call would wait for it. So what is lent stops at a share of the arena. One per context, on its
 * JS thread.
 */
import { keptAnswersShare } from '../../limits.ts';
import type { NativeContext } from '../../native/native.ts';

export class AnswerMemory {
  readonly #native: Pick<NativeContext, 'arenaBytes' | 'stats'>;
  /** Bytes that may still come before the arena must be looked at, which takes a while. */
  #unwatched = 0;

  constructor(native: Pick<NativeContext, 'arenaBytes' | 'stats'>) {
    this.#native = native;
  }

  /** An answer of so many bytes is in the arena. Whether it is to be copied out. */
  copies(bytes: number): boolean {
    // A block may be larger than what is in it.
    this.#unwatched -= 2 * bytes;
    if (this.#unwatched >= 0) return false;
    const { arenaBytes } = this.#native;
    this.#unwatched = arenaBytes * keptAnswersShare - this.#native.stats().arenaLeasedBytes;
    return this.#unwatched < 0;
  }
}
