/** Between the well-known types and what JavaScript has for them. For applications; the codec itself never converts. */
import type { Any } from './google/protobuf/any.rdma.ts';
import type { Duration } from './google/protobuf/duration.rdma.ts';
import type { Timestamp } from './google/protobuf/timestamp.rdma.ts';
import type { MessageType } from './types.ts';

/** Milliseconds since 1970 or of a span, split so that `nanos` is never negative. */
function split(ms: number): { seconds: bigint; nanos: number } {
  if (!Number.isFinite(ms)) throw new RangeError(`rdma-rpc: ${ms} is not a time in milliseconds`);
  const seconds = Math.floor(ms / 1000);
  const nanos = Math.round((ms - seconds * 1000) * 1e6);
  // Rounding may fill up the second.
  return nanos === 1e9 ? { seconds: BigInt(seconds + 1), nanos: 0 } : { seconds: BigInt(seconds), nanos };
}

/** Throws RangeError for an invalid Date. */
export function timestampFromDate(date: Date): Timestamp {
  return split(date.getTime());
}

/** Rounded down to milliseconds, which is all that a Date has. */
export function timestampToDate(timestamp: Timestamp): Date {
  return new Date(Number(timestamp.seconds) * 1000 + Math.floor(timestamp.nanos / 1e6));
}

/** Throws RangeError for NaN and infinities. */
export function durationFromMs(ms: number): Duration {
  const { seconds, nanos } = split(Math.abs(ms));
  // Both parts have the sign of the span. `0 -` instead of a minus: no -0.
  return ms < 0 ? { seconds: -seconds, nanos: 0 - nanos } : { seconds, nanos };
}

export function durationToMs(duration: Duration): number {
  return Number(duration.seconds) * 1000 + duration.nanos / 1e6;
}

/** What type names in an Any start with unless somebody says otherwise. */
const typeUrlPrefix = 'type.googleapis.com/';

export function packAny<T, Init>(type: MessageType<T, Init>, message: Init): Any {
  return { typeUrl: typeUrlPrefix + type.typeName, value: type.encode(message) };
}

/** Undefined when the Any holds another type. Throws CodecError when its value is malformed. */
export function unpackAny<T, Init>(type: MessageType<T, Init>, any: Any): T | undefined {
  return any.typeUrl.slice(any.typeUrl.lastIndexOf('/') + 1) === type.typeName
    ? type.decode(any.value)
    : undefined;
}
