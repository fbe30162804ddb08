/**
 * Errors of `rdma-rpc/verbs`. A wrong argument throws a TypeError or RangeError instead.
 */
import type { NativeRefusal } from '../native/verbs-device.ts';

/**
 * `closed`: the object was closed. `state`: the queue pair is not in a state that allows the call. `full`: a
 * queue has no room. `unsupported`: the device does not support the call. `refused`: the device, the system
 * or the peer refused the call, for the reason in the message.
 */
export type VerbsErrorCode = 'closed' | 'state' | 'full' | 'unsupported' | 'refused';

/** The error of a call that could not be carried out. The call has changed nothing. */
export class VerbsError extends Error {
  readonly code: VerbsErrorCode;

  constructor(code: VerbsErrorCode, message: string) {
    super(message);
    this.name = 'VerbsError';
    this.code = code;
  }
}

/** The causes, by their numbers in native code (Cause in native/checked/refusal.h). */
const causes = [undefined, 'range', 'closed', 'state', 'full', 'unsupported', 'refused'] as const;

/**
 * Returns the error for a refusal of native code. `what` names the call and the object on which it was made.
 */
export function errorOf(what: string, { cause, text }: NativeRefusal): Error {
  const code = causes[cause];
  const message = `${what}: ${text}`;
  return code === 'range' || code === undefined ? new RangeError(message) : new VerbsError(code, message);
}

/** Returns the result of a native call, or throws the reason why the call was refused. */
export function granted<Result extends number | object>(
  what: string,
  result: Result | NativeRefusal,
): Exclude<Result, NativeRefusal> {
  if (typeof result === 'object' && 'cause' in result) throw errorOf(what, result);
  return result as Exclude<Result, NativeRefusal>;
}

export function closedError(name: string): VerbsError {
  return new VerbsError('closed', `${name} is closed`);
}

/** Checks an argument: an integer from `min` to `max`. */
export function checkedInteger(where: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  const shown = typeof value === 'number' ? String(value) : `a ${typeof value}`;
  throw new RangeError(`${where}: ${shown} is not an integer from ${min} to ${max}`);
}

const gidBytes = 16;

/** Checks a GID: a Uint8Array of 16 bytes. */
export function checkedGid(where: string, gid: unknown): Uint8Array {
  if (gid instanceof Uint8Array && gid.byteLength === gidBytes) return gid;
  throw new TypeError(`${where}: takes a GID, a Uint8Array of ${gidBytes} bytes`);
}
