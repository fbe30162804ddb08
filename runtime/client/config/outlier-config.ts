/**
 * Outlier detection in a service configuration: gRPC's policy `outlier_detection_experimental` (A50), which
 * wraps another policy. Its fields become settings of the option `outlierDetection`. Settings that have fixed
 * values in this package are reported and have no effect. This file is used when a service configuration is
 * checked.
 */
import * as limits from '../connections/limits.ts';
import type { OutlierConfig } from '../connections/outliers.ts';
import type { Fields } from './config-values.ts';

export const outlierPolicy = 'outlier_detection_experimental';

/** Fields that this package supports with only one value, and that value. */
const fixed: Readonly<Record<string, number>> = { maxEjectionPercent: 100 * limits.ejectedShareMax };
const fixedOfRate: Readonly<Record<string, number>> = {
  stdevFactor: 1000 * limits.outlierStdevs,
  enforcementPercentage: 100,
  minimumHosts: limits.outlierHostsMin,
};

interface Range {
  readonly default: number;
  readonly min: number;
  readonly max: number;
}
const within = (value: number | undefined, { default: byDefault, min, max }: Range): number =>
  value === undefined ? byDefault : Math.min(max, Math.max(min, Math.round(value)));

/** Reads the configuration of outlier detection. `report` gets a line for each field that has no effect. */
export function outliersOf(given: Fields, report: (line: string) => void): OutlierConfig {
  const checkFixed = (fields: Fields, values: Readonly<Record<string, number>>): void => {
    for (const [name, value] of Object.entries(values)) {
      const other = fields.number(name, 0, 0xffff_ffff);
      if (other !== undefined && other !== value)
        report(`${fields.path}.${name}: ${other} has no effect, it is always ${value}`);
    }
  };
  checkFixed(given, fixed);
  const longestMs = given.durationMs('maxEjectionTime');
  if (longestMs !== undefined && longestMs !== limits.ejectionMaxMs)
    report(`${given.path}.maxEjectionTime has no effect, it is always ${limits.ejectionMaxMs / 1000}s`);
  if (given.has('failurePercentageEjection'))
    report(`${given.path}.failurePercentageEjection has no effect; use successRateEjection`);
  const rate = given.object('successRateEjection');
  if (rate !== undefined) checkFixed(rate, fixedOfRate);
  const intervalMs = within(given.durationMs('interval'), limits.outlierIntervalMs);
  return {
    // When this field is missing, success rates are not compared. The interval is used only for that
    // comparison.
    intervalMs: rate === undefined ? 0 : intervalMs,
    ejectionMs: within(given.durationMs('baseEjectionTime'), limits.ejectionMs),
    answersMin: within(rate?.integer('requestVolume', 0, 0xffff_ffff), limits.outlierAnswers),
  };
}
