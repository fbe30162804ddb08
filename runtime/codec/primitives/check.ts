/**
 * Checks the kind of values whose parts are inspected: messages, strings, `bytes`, lists, oneofs. (Numbers
 * and booleans are checked where they are written.) Generated code calls these functions when it encodes and
 * when it measures.
 */
import { CodecError, mismatch } from '../error.ts';
import { nestingMax } from '../limits.ts';
import { lengthOf } from '../memory/intrinsic.ts';
import { whyDetached } from '../memory/lent.ts';
import type { Writer } from '../memory/writer.ts';

/** A local copy of nestingMax, because V8 checks on each access whether an import is initialised. */
const depthMax = nestingMax;

/** Checks a message on entry to it; `name` is its type, or the field that contains it. */
export function checkMessage(message: object, depth: number, name: string): void {
  if (typeof message !== 'object' || message === null || Array.isArray(message))
    mismatch(name, message, 'an object');
  if (depth > depthMax) {
    throw new CodecError(name, `messages are nested more than ${nestingMax} deep (a cycle?)`);
  }
}

/**
 * Does the same as `checkMessage`, for an encoder. Returns whether the room is too small even for the
 * smallest message of the type, which would end at `least`.
 */
export function noEntry(
  message: object,
  writer: Writer,
  least: number,
  limit: number,
  depth: number,
  name: string,
): boolean {
  if (typeof message !== 'object' || message === null || Array.isArray(message) || depth > depthMax)
    refuseMessage(message, depth, name);
  if (least <= limit) return false;
  writer.full = true;
  return true;
}

const refuseMessage = checkMessage;

export function checkString(text: string, field: string): void {
  if (typeof text !== 'string') mismatch(field, text, 'a string');
}

export function checkBytes(value: Uint8Array, field: string): void {
  if (!ArrayBuffer.isView(value) || value.BYTES_PER_ELEMENT !== 1) refuseBytes(value, field);
}

function refuseBytes(value: unknown, field: string): never {
  const wanted = ArrayBuffer.isView(value)
    ? 'a Uint8Array, as bytesOf() of rdma-rpc/tensor makes of it'
    : 'a Uint8Array';
  mismatch(field, value, wanted);
}

/** Returns whether a `bytes` field without presence must be sent. */
export function hasBytes(value: Uint8Array, field: string): boolean {
  checkBytes(value, field);
  // A value that claims a length but has no elements is written as an empty value.
  if (value.length !== 0 || lengthOf(value) !== 0) return true;
  checkAttached(value, field);
  return false;
}

/**
 * Throws if an empty value is detached. The value may have been detached while the call waited. Without this
 * check, the value's bytes would silently be missing.
 */
export function checkAttached(value: Uint8Array, field: string): void {
  try {
    // This throws for a detached array, as every method of typed arrays does; `buffer.detached` does not
    // exist on all Node versions.
    Uint8Array.prototype.at.call(value, 0);
  } catch {
    throw new CodecError(field, whyDetached(value.buffer));
  }
}

export function checkList(list: readonly unknown[], field: string): void {
  if (!Array.isArray(list)) mismatch(field, list, 'an array');
}

export function checkOneof(value: object, field: string): void {
  if (typeof value !== 'object' || value === null)
    mismatch(field, value, 'an object with `case` and `value`');
}

/**
 * Accepts a oneof without a set field, which is absent or has `case: undefined`. Throws for anything else.
 */
export function noCase(value: { readonly case?: unknown } | undefined, field: string): void {
  if (value === undefined) return;
  checkOneof(value, field);
  if (value.case !== undefined) unknownCase(field, value);
}

export function unknownCase(field: string, value: unknown): never {
  mismatch(field, value, 'the name of one of its fields as `case`');
}
