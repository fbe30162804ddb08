/**
 * Looks now and then which addresses of a channel give far fewer good answers than the others, as gRPC's
 * outlier detection does (A50, success rate). Owned by the connections of a channel. Its timer runs only
 * while calls are made.
 */
import { inRoot } from '../../core/scopes.ts';
import { outlierHostsMin, outlierStdevs } from './limits.ts';

/** What an address has answered since the last look. */
export interface Tally {
  readonly answers: number;
  readonly bad: number;
}

/**
 * HandshakeLimiter of those whose share of good answers is below the mean by too many standard deviations.
 * Those with few answers do not count.
 */
export function outliers(tallies: readonly Tally[], answersMin: number): number[] {
  const rates = tallies.map(({ answers, bad }) => (answers >= answersMin ? (answers - bad) / answers : -1));
  const known = rates.filter((rate) => rate >= 0);
  if (known.length < outlierHostsMin) return [];
  const mean = known.reduce((sum, rate) => sum + rate, 0) / known.length;
  const variance = known.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / known.length;
  const least = mean - outlierStdevs * Math.sqrt(variance);
  return [...rates.keys()].filter((place) => rates[place]! >= 0 && rates[place]! < least);
}

/** An address, as far as this is concerned. */
export interface Watched {
  /** Begins to count anew. */
  takeTally(): Tally;
  /** Leaves it out for a while, if that may be. */
  eject(): unknown;
}

/**
 * How an address that answers badly is found, and left out for a while, as long as the channel has another.
 */
export interface OutlierDetection {
  /** Bad answers in a row before one of several addresses is left out; 0: never. Default 5. */
  readonly badAnswersMax?: number;
  /** How long it is left out the first time. Default 30 000. */
  readonly ejectionMs?: number;
  /**
   * How often the shares of good answers of several addresses are compared, to leave out one that falls
   * behind; 0: never. Default 10 000.
   */
  readonly intervalMs?: number;
  /** Answers that an address must have given in that time to be compared. Default 100. */
  readonly answersMin?: number;
}

export interface OutlierSettings {
  readonly outlierDetection: Pick<Required<OutlierDetection>, 'intervalMs' | 'answersMin'>;
}

export class Outliers {
  readonly #settings: OutlierSettings;
  readonly #addresses: () => readonly Watched[];
  #timer: NodeJS.Timeout | undefined;

  constructor(settings: OutlierSettings, addresses: () => readonly Watched[]) {
    this.#settings = settings;
    this.#addresses = addresses;
  }

  /** Calls are being made. */
  wake(): void {
    const { intervalMs } = this.#settings.outlierDetection;
    if (this.#timer === undefined && intervalMs > 0) {
      this.#timer = inRoot(() => setTimeout(this.#look, intervalMs)).unref();
    }
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  readonly #look = (): void => {
    this.#timer = undefined;
    const addresses = this.#addresses();
    const tallies = addresses.map((each) => each.takeTally());
    for (const place of outliers(tallies, this.#settings.outlierDetection.answersMin))
      addresses[place]!.eject();
    if (tallies.some(({ answers }) => answers > 0)) this.wake();
  };
}
