/**
 * Which trace files of a thread are kept: a bounded number, so that a peer that makes sessions fail does not
 * fill a disk, and of every reason the newest, so that it does not use up the files of the others either.
 * Used by session-traces.ts when a session has failed.
 */
import { tracePauseMs } from '../../limits.ts';

interface KeptTrace {
  readonly path: string;
  readonly kind: string;
  readonly atMs: number;
}

/** Without numbers and what may be anybody's text, so that a peer does not make up reasons without end. */
const kindOf = (reason: string): string => reason.replace(/'[^']*'|"[^"]*"|[^a-z ]+/gi, '').slice(0, 48);

export class KeptTraces {
  readonly #max: number;
  /** The oldest first. */
  readonly #kept: KeptTrace[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Whether a trace is to be written now: not when there is no free place and one with this reason has just
   * been written.
   */
  wants(reason: string, nowMs: number): boolean {
    if (this.#kept.length < this.#max) return true;
    const kind = kindOf(reason);
    return !this.#kept.some((one) => one.kind === kind && nowMs - one.atMs < tracePauseMs);
  }

  /** Counts a file. Returns the one that goes for it: the oldest of the reason that has the most files. */
  add(path: string, reason: string, nowMs: number): string | undefined {
    this.#kept.push({ path, kind: kindOf(reason), atMs: nowMs });
    if (this.#kept.length <= this.#max) return undefined;
    const counts = new Map<string, number>();
    for (const { kind } of this.#kept) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const at = this.#kept.findIndex(({ kind }) => counts.get(kind) === most);
    return this.#kept.splice(at, 1)[0]!.path;
  }
}
