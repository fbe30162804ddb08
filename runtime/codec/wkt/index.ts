/**
 * Functions for the well-known types. They are part of `rdma-rpc/codec`.
 */
export { createRegistry, isAny, packAny, type Registry, type Unpacked, unpackAny } from './any.ts';
export { durationFromMs, durationFromNanos, durationToMs, durationToNanos } from './duration.ts';
export { fieldMaskFor } from './field-mask.ts';
export { checkFieldMask, type MaskMergeOptions, mergeByMask, pruneByMask } from './masked.ts';
export {
  type JsonObject,
  type JsonValue,
  listFromJson,
  listToJson,
  structFromJson,
  structToJson,
  valueFromJson,
  valueToJson,
} from './struct.ts';
export {
  type DurationLike,
  durationFromTemporal,
  durationToTemporal,
  type InstantLike,
  type TemporalLike,
  timestampFromTemporal,
  timestampToTemporal,
} from './temporal.ts';
export {
  timestampFromDate,
  timestampFromMs,
  timestampFromNanos,
  timestampNow,
  timestampToDate,
  timestampToMs,
  timestampToNanos,
} from './timestamp.ts';
