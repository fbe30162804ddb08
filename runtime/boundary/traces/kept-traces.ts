/**
 * Decides which trace files of a thread are kept. The number of files is limited, so that a peer that makes
 * sessions fail cannot fill the disk. The newest file of each reason is kept, so that such a peer cannot
 * displace the files of other reasons either. session-traces.ts uses this class when a session has failed.
 */
import { tracePauseMs } from '../../limits.ts';

interface KeptTrace {
  readonly path: string;
  readonly kind: string;
  readonly atMs: number;
}

/**
 * Returns the reason without numbers and quoted texts, so that a peer cannot invent an unlimited number of
 * reasons.
 */
const kindOf = (reason: string): string => reason.replace(/'[^']*'|"[^"]*"|[^a-z ]+/gi, '').slice(0, 48);

export class KeptTraces {
  readonly #max: number;
  /** The kept files, the oldest first. */
  readonly #kept: KeptTrace[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Returns whether to write a trace now. Returns false when the maximum number of files exists and a trace
   * with this reason has just been written.
   */
  wants(reason: string, nowMs: number): boolean {
    if (this.#kept.length < this.#max) return true;
    const kind = kindOf(reason);
    return !this.#kept.some((one) => one.kind === kind && nowMs - one.atMs < tracePauseMs);
  }

  /**
   * Adds a file. Returns the file that must be deleted in return, if any: the oldest file of the reason that
   * has the most files.
   */
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
