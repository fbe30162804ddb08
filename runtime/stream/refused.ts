/**
 * A message that must not end its stream when it cannot be sent: it says what is to be done instead, and the
 * stream goes on without it. Used by both ends of a stream, for messages that are calls of their own
 * (runtime/reverse).
 */

/** Why native code would not send it. */
export interface Refused {
  /** A Reason. */
  readonly reason: number;
  /** Of one that is too large: its size, and what the peer accepts. */
  readonly bytes: number;
  readonly maxBytes: number;
}

/** Key of a message's own function for that. */
export const onRefused: unique symbol = Symbol('onRefused');

export interface Refusable {
  [onRefused]?(why: Refused): void;
}

/** Whether the message has taken it upon itself. */
export function tookBack(message: unknown, why: Refused): boolean {
  if (typeof message !== 'object' || message === null) return false;
  const take = (message as Refusable)[onRefused];
  if (take === undefined) return false;
  take.call(message, why);
  return true;
}
