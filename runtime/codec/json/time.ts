/**
 * Timestamp and Duration as text: RFC 3339, and seconds followed by `s`. well-known.ts calls these functions.
 */
import { CodecError, mismatch } from '../error.ts';
import type { Duration } from '../google/protobuf/duration.rdma.ts';
import type { Timestamp } from '../google/protobuf/timestamp.rdma.ts';
import {
  durationSecondsMax,
  nanosMax,
  timestampSecondsMax as secondsMax,
  timestampSecondsMin as secondsMin,
} from '../wkt/seconds.ts';

const rfc3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))$/;
const span = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?s$/;

/** Returns a decimal point and 3, 6 or 9 digits, or an empty text when there are no nanoseconds. */
function fraction(nanos: number): string {
  if (nanos === 0) return '';
  const digits = String(nanos).padStart(9, '0');
  return `.${digits.replace(/(?:000){1,2}$/, '')}`;
}

function nanosOf(digits: string | undefined): number {
  return Number((digits ?? '').padEnd(9, '0'));
}

function parts(message: { seconds?: unknown; nanos?: unknown }, path: string): [bigint, number] {
  const { seconds = 0n, nanos = 0 } = message;
  if (typeof seconds !== 'bigint') mismatch(`${path}.seconds`, seconds, 'a bigint');
  if (typeof nanos !== 'number' || !Number.isInteger(nanos))
    mismatch(`${path}.nanos`, nanos, 'a whole number');
  return [seconds, nanos];
}

export function timestampToJson(message: object, path: string): string {
  const [seconds, nanos] = parts(message, path);
  if (seconds < secondsMin || seconds > secondsMax)
    throw new CodecError(path, `a timestamp of ${seconds} seconds is not within the years 1 to 9999`);
  if (nanos < 0 || nanos > nanosMax) mismatch(`${path}.nanos`, nanos, `a number from 0 to ${nanosMax}`);
  const text = new Date(Number(seconds) * 1000).toISOString();
  return `${text.slice(0, -'.000Z'.length)}${fraction(nanos)}Z`;
}

export function timestampFromJson(json: unknown, path: string): Timestamp {
  const match = typeof json === 'string' ? rfc3339.exec(json) : null;
  if (match === null) return mismatch(path, json, 'a time like "2026-11-21T10:00:00.5Z"');
  const [, year, month, day, hour, minute, second, digits, sign, offsetHours = '0', offsetMinutes = '0'] =
    match;
  const ms = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  // Date turns 30 February into 2 March, and hour 24 into hour 0 of the next day.
  const exists = Number.isFinite(ms) && Number(hour) < 24 && new Date(ms).getUTCDate() === Number(day);
  const offset = Number(offsetHours) * 3600 + Number(offsetMinutes) * 60;
  if (!exists || Number(offsetHours) > 23 || Number(offsetMinutes) > 59)
    mismatch(path, json, 'a time that exists');
  const seconds = BigInt(ms / 1000 + (sign === '-' ? offset : -offset));
  if (seconds < secondsMin || seconds > secondsMax) mismatch(path, json, 'a time within the years 1 to 9999');
  return { seconds, nanos: nanosOf(digits) };
}

export function durationToJson(message: object, path: string): string {
  const [seconds, nanos] = parts(message, path);
  const most = seconds < 0n ? -seconds : seconds;
  if (most > durationSecondsMax)
    throw new CodecError(path, `a duration of ${seconds} seconds is longer than 10,000 years`);
  if (Math.abs(nanos) > nanosMax || (seconds > 0n && nanos < 0) || (seconds < 0n && nanos > 0))
    mismatch(`${path}.nanos`, nanos, `a number within ±${nanosMax}, of the sign of the seconds`);
  return `${seconds < 0n || nanos < 0 ? '-' : ''}${most}${fraction(Math.abs(nanos))}s`;
}

export function durationFromJson(json: unknown, path: string): Duration {
  const match = typeof json === 'string' ? span.exec(json) : null;
  if (match === null) return mismatch(path, json, 'a duration like "1.5s"');
  const [, sign, whole = '0', digits] = match;
  const seconds = BigInt(whole);
  if (seconds > durationSecondsMax) mismatch(path, json, 'a duration of at most 10,000 years');
  const nanos = nanosOf(digits);
  return sign === '-' ? { seconds: -seconds, nanos: 0 - nanos } : { seconds, nanos };
}
