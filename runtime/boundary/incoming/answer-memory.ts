/**
 * Decides which large responses stay in the arena, as views that the caller leases, and which are copied out
 * of it on arrival. Leasing is right for a caller that drops or releases its responses: the memory of these
 * responses is soon free again (native/binding/buffers/young_buffers.h), whereas a copy costs several times
 * as much, because it needs fresh pages. A caller that keeps its responses, in a cache for example, would
 * finally hold the whole arena, and every large call would wait for memory. Therefore leased responses are
 * limited to a share of the arena. Each context has one such object, on its JS thread.
 */
import { keptAnswersShare } from '../../limits.ts';
import type { NativeContext } from '../../native/native.ts';

export class AnswerMemory {
  readonly #native: Pick<NativeContext, 'arenaBytes' | 'stats'>;
  /** Number of bytes that may still arrive before the arena's usage must be read again, which is slow. */
  #unwatched = 0;

  constructor(native: Pick<NativeContext, 'arenaBytes' | 'stats'>) {
    this.#native = native;
  }

  /** Returns whether a response of this size that has arrived in the arena must be copied out. */
  copies(bytes: number): boolean {
    // The size counts twice, because a block may be larger than its content.
    this.#unwatched -= 2 * bytes;
    if (this.#unwatched >= 0) return false;
    const { arenaBytes } = this.#native;
    this.#unwatched = arenaBytes * keptAnswersShare - this.#native.stats().arenaLeasedBytes;
    return this.#unwatched < 0;
  }
}
