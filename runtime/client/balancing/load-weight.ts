/**
 * The weight of a server by its own load reports, as in gRPC (A58): calls per second divided by utilization,
 * which is what the server could take at full load. A server that reports errors counts as busier. A weight
 * counts after reports have come for a while, and until they have been missing for a while. One for each
 * connection of a channel with weighted round robin.
 */

/** What a server says about itself (ORCA's OrcaLoadReport, the fields that the weight needs). */
export interface ReportedLoad {
  /** Calls per second of the whole server. */
  readonly qps: number;
  /** Failed calls per second of the whole server. */
  readonly eps: number;
  /** Share of its capacity that is in use, from 0; more than 1 beyond a soft limit. */
  readonly utilization: number;
}

export interface LoadReportSettings {
  readonly blackoutMs: number;
  readonly expirationMs: number;
  readonly errorPenalty: number;
}

export class LoadWeight {
  readonly #settings: LoadReportSettings;
  #weight = 0;
  #sinceMs = Number.POSITIVE_INFINITY;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(settings: LoadReportSettings) {
    this.#settings = settings;
  }

  /** Takes a report. One without calls or utilization says nothing about the capacity, and is ignored. */
  report({ qps, eps, utilization }: ReportedLoad, nowMs: number): void {
    const { errorPenalty, expirationMs } = this.#settings;
    const busy = utilization > 0 && qps > 0 ? utilization + (eps / qps) * errorPenalty : 0;
    const weight = busy > 0 ? qps / busy : 0;
    if (!(weight > 0 && Number.isFinite(weight))) return;
    if (nowMs - this.#lastMs >= expirationMs) this.#sinceMs = nowMs;
    this.#lastMs = nowMs;
    this.#weight = weight;
  }

  /** Returns the weight; 0 when there is none that counts. */
  at(nowMs: number): number {
    const { blackoutMs, expirationMs } = this.#settings;
    if (nowMs - this.#lastMs >= expirationMs || nowMs - this.#sinceMs < blackoutMs) return 0;
    return this.#weight;
  }
}
