/**
 * Checks of kind, for values whose parts are looked at: messages, strings, `bytes`, lists, oneofs. (Numbers
 * and booleans are checked where they are written.) Called by generated code when it encodes and when it
 * measures.
 */
import { CodecError, mismatch } from '../error.ts';
import { nestingMax } from '../limits.ts';
import { lengthOf } from '../memory/intrinsic.ts';
import { whyDetached } from '../memory/lent.ts';
import type { Sink } from '../memory/sink.ts';

/** Of this module and not of another: V8 asks every time whether an import has its value yet. */
const depthMax = nestingMax;

/** Entering a message, which `name` (its type, or the field that it is in) is to have. */
export function checkMessage(message: object, depth: number, name: string): void {
  if (typeof message !== 'object' || message === null || Array.isArray(message))
    mismatch(name, message, 'an object');
  if (depth > depthMax) {
    throw new CodecError(name, `messages are nested more than ${nestingMax} deep (a cycle?)`);
  }
}

/**
 * The same for an encoder: whether there is too little room for what any message of the type needs at least,
 * which ends at `least`.
 */
export function noEntry(
  message: object,
  sink: Sink,
  least: number,
  limit: number,
  depth: number,
  name: string,
): boolean {
  if (typeof message !== 'object' || message === null || Array.isArray(message) || depth > depthMax)
    refuseMessage(message, depth, name);
  if (least <= limit) return false;
  sink.full = true;
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

/** Whether a `bytes` field without presence is worth sending. */
export function hasBytes(value: Uint8Array, field: string): boolean {
  checkBytes(value, field);
  // One that says more than it has is written as empty.
  if (value.length !== 0 || lengthOf(value) !== 0) return true;
  checkAttached(value, field);
  return false;
}

/**
 * An empty value, which is not to be one whose memory is gone: a call may have waited meanwhile, and its
 * bytes would be missing without a word.
 */
export function checkAttached(value: Uint8Array, field: string): void {
  try {
    // As every method of typed arrays it throws for a detached one, whose `buffer.detached` is not everywhere
    // yet.
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

/** A oneof of which none of its fields is the case: it is absent, or says so, or is refused. */
export function noCase(value: { readonly case?: unknown } | undefined, field: string): void {
  if (value === undefined) return;
  checkOneof(value, field);
  if (value.case !== undefined) unknownCase(field, value);
}

export function unknownCase(field: string, value: unknown): never {
  mismatch(field, value, 'the name of one of its fields as `case`');
}
