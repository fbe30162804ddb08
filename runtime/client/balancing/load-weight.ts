/**
 * The weight of a server that follows from its own load reports, as in gRPC (A58). The weight is the number
 * of calls per second divided by the utilization, which estimates the calls that the server could take at
 * full load. A server that reports errors counts as busier. The weight is used from the time when reports
 * have come for `blackoutMs`, until no report has come for `expirationMs`. Each connection of a channel with
 * weighted round robin has one such object.
 */

/** The load that a server reports: the fields of ORCA's OrcaLoadReport that the weight needs. */
export interface ReportedLoad {
  /** Calls per second of the whole server. */
  readonly qps: number;
  /** Failed calls per second of the whole server. */
  readonly eps: number;
  /** Share of the server's capacity that is in use: 0 when idle, more than 1 beyond a soft limit. */
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

  /** Takes a report. A report without calls or utilization says nothing about the capacity and is ignored. */
  report({ qps, eps, utilization }: ReportedLoad, nowMs: number): void {
    const { errorPenalty, expirationMs } = this.#settings;
    const busy = utilization > 0 && qps > 0 ? utilization + (eps / qps) * errorPenalty : 0;
    const weight = busy > 0 ? qps / busy : 0;
    if (!(weight > 0 && Number.isFinite(weight))) return;
    if (nowMs - this.#lastMs >= expirationMs) this.#sinceMs = nowMs;
    this.#lastMs = nowMs;
    this.#weight = weight;
  }

  /** Returns the weight, or 0 when there is no usable weight at this time. */
  at(nowMs: number): number {
    const { blackoutMs, expirationMs } = this.#settings;
    if (nowMs - this.#lastMs >= expirationMs || nowMs - this.#sinceMs < blackoutMs) return 0;
    return this.#weight;
  }
}
