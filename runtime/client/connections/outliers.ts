/**
 * Outlier detection, as in gRPC (A50, success rate): periodically finds addresses of a channel whose success
 * rate is much lower than that of the others. The connections of a channel own this object. Its timer runs
 * only while calls are made.
 */
import { inRoot } from '../../core/scopes.ts';
import { outlierHostsMin, outlierStdevs } from './limits.ts';

/** The answers of an address since the last check. */
export interface Tally {
  readonly answers: number;
  readonly bad: number;
}

/**
 * Returns the indexes of the addresses whose success rate is too many standard deviations below the mean.
 * Addresses with few answers are ignored.
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

/** The functions of an address that this file needs. */
export interface Watched {
  /** Returns the answers and starts counting again. */
  takeTally(): Tally;
  /** Ejects the address for a while, if that is allowed. */
  eject(): unknown;
}

/**
 * Conditions under which an address with bad answers is ejected for a while. The last address of a channel is
 * never ejected.
 */
export interface OutlierDetection {
  /**
   * Number of consecutive errors after which one of several addresses is ejected. With 0, errors in a row
   * never eject an address. Default 5.
   */
  readonly badAnswersMax?: number;
  /** Duration of the first ejection, in ms. Default 30 000. */
  readonly ejectionMs?: number;
  /**
   * Interval in ms at which the success rates of several addresses are compared, to eject an outlier. With 0,
   * they are never compared. Default 10 000.
   */
  readonly intervalMs?: number;
  /** Number of answers that an address must have given in an interval to be compared. Default 100. */
  readonly answersMin?: number;
}

/**
 * The settings that a service configuration can change; consecutive errors keep the setting of the channel.
 */
export type OutlierConfig = Required<Omit<OutlierDetection, 'badAnswersMax'>>;

export interface OutlierSettings {
  readonly outlierDetection: Pick<Required<OutlierDetection>, 'intervalMs' | 'answersMin'>;
}

/** The owner of the outlier detection. The settings may change. */
export interface OutlierOwner {
  readonly settings: OutlierSettings;
}

export class Outliers {
  readonly #owner: OutlierOwner;
  readonly #addresses: () => readonly Watched[];
  #timer: NodeJS.Timeout | undefined;

  constructor(owner: OutlierOwner, addresses: () => readonly Watched[]) {
    this.#owner = owner;
    this.#addresses = addresses;
  }

  /** Runs when calls are made; starts the timer. */
  wake(): void {
    const { intervalMs } = this.#owner.settings.outlierDetection;
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
    for (const place of outliers(tallies, this.#owner.settings.outlierDetection.answersMin))
      addresses[place]!.eject();
    if (tallies.some(({ answers }) => answers > 0)) this.wake();
  };
}
